"""Aequa in one file: the paper's two algorithms on scikit-learn's digits, to read beside it.

    python examples/aequa_in_one_file.py

Names, equations and line numbers are those of Tastan, Horvath and Nandakumar, "Aequa: Fair Model
Rewards in Collaborative Learning via Slimmable Networks" (ICML 2025). Five participants hold shares
of very different size. In Algorithm 1 everybody trains the full model, and the rewards are
allocated after training. In Algorithm 2 everybody trains only the sub-model it has earned so far.
This file simulates the participants in a loop; `aequa_flwr.simulate` runs the same on Flower.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor

from aequa_flwr import MaskedSum, Schema, allocate, extract
from aequa_flwr.slim import NDArray, Params
from aequa_flwr.slim.networks import SlimNetwork, build_network
from aequa_flwr.training import sandwich_loss

SIZES = (30, 60, 120, 240, 480)  # examples of each participant
N, T = len(SIZES), 20  # participants, rounds
P_MIN, P_MAX = 0.25, 1.0  # narrowest and widest sub-model
GAMMA = 0.5  # momentum of contributions in Algorithm 2
BATCH, LEARNING_RATE, MOMENTUM = 16, 0.03, 0.9

Examples = tuple[Tensor, Tensor]  # xi = (z, y): inputs and labels


class Outcome(NamedTuple):
    """What each participant contributed, and the sub-model it got for it."""

    contributions: list[float]  # c_i
    widths: list[float]  # p_i
    accuracies: list[float]  # a_i


def make_federation() -> tuple[list[Examples], Examples]:
    """Return the data D_i of each participant, and the server's validation data."""
    digits = load_digits()
    z = torch.tensor(digits.images[:, None] / 8 - 1, dtype=torch.float32)
    y = torch.tensor(digits.target)
    order = np.random.default_rng(0).permutation(len(y))
    *shares, rest = np.split(order, np.cumsum(SIZES))
    return [(z[rows], y[rows]) for rows in shares], (z[rest], y[rest])


def make_network() -> SlimNetwork:
    """Return a network with one convolution and two linear layers that runs at any width."""
    return build_network("small-cnn", Schema.numbered("images", (1, 8, 8), 10))


def train_locally(
    network: SlimNetwork,
    x: Params,
    p_max: float,
    data: Examples,
    rng: np.random.Generator,
    *,
    random_widths: bool = True,
) -> dict[str, NDArray]:
    """Return x_(i,E): the sub-model ``x`` of width ``p_max`` after one epoch on ``data``."""
    z, y = data
    network.load(x, p_max)
    optimizer = torch.optim.SGD(network.parameters(), LEARNING_RATE, MOMENTUM)
    order = rng.permutation(len(y))
    for rows in (order[start : start + BATCH] for start in range(0, len(y), BATCH)):  # line 4
        # Line 5: p_(i,k) ~ U[p_min, p_max].
        p = float(network.draw(rng, P_MIN, p_max, 1)[0]) if random_widths else None
        # Line 6: update the sub-models of width p_max and of width p on the same batch.
        optimizer.zero_grad()
        loss, _ = sandwich_loss(network, z[rows], y[rows], p_max, p)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
    return network.dump(p_max)


def accuracy(network: SlimNetwork, x: Params, p: float, data: Examples) -> float:
    """Return the balanced accuracy of the sub-model ``x`` of width ``p``."""
    z, y = data
    network.load(x, p)
    with torch.no_grad():
        predicted = network(z, p).argmax(dim=1)
    return float(balanced_accuracy_score(y, predicted))


def standalone_accuracies(data: Sequence[Examples], validation: Examples) -> list[float]:
    """Return how accurate each participant gets alone: T epochs of the full network."""
    accuracies = []
    for i in range(N):
        network, rng = make_network(), np.random.default_rng(i)
        x = network.dump()
        for _ in range(T):
            x = train_locally(network, x, P_MAX, data[i], rng, random_widths=False)
        accuracies.append(accuracy(network, x, P_MAX, validation))
    return accuracies


def algorithm_1(data: Sequence[Examples], validation: Examples, c: list[float]) -> Outcome:
    """Train the full model together, then allocate rewards (Algorithm 1 and section 4.2)."""
    network, rng = make_network(), np.random.default_rng(N)
    x = network.dump()
    for _t in range(T):
        received = MaskedSum(network.layouts)
        for i in range(N):  # lines 2 and 3: everybody gets x^t
            received = received.add(train_locally(network, x, P_MAX, data[i], rng))  # line 8
        x = received.mean(x)  # line 10: x^(t+1) = 1/N sum_i x_(i,E)^t

    # What each width is worth: the accuracy a_k of every distinct sub-model.
    widths = network.ladder(P_MIN, P_MAX)
    a = [accuracy(network, extract(x, network.layouts, p), p, validation) for p in widths]
    # Equation 3: minimise f(a) = -E[u(a)] / (Var[u(a)] + epsilon), where u_i(a) = a_i - c_i
    # (equation 2), subject to u_i(a) >= 0 (individual rationality).
    k = allocate(c, a).index
    return Outcome(c, [widths[k_i] for k_i in k], [a[k_i] for k_i in k])


def cosines_with_mean(updates: NDArray) -> list[float]:
    """Assess contributions (CA) as CGSV does: does an update point where the federation goes?"""
    mean = updates.mean(axis=0)
    lengths = np.linalg.norm(updates, axis=1) * np.linalg.norm(mean)
    return [float(cosine) for cosine in updates @ mean / lengths]


def algorithm_2(data: Sequence[Examples], validation: Examples) -> Outcome:
    """Give everybody the sub-model it has earned so far, round by round (Algorithm 2)."""
    network, rng = make_network(), np.random.default_rng(N + 1)
    x, widths = network.dump(), network.ladder(P_MIN, P_MAX)
    p, c = [P_MAX] * N, [0.0] * N  # line 3: the full model for everybody in round 0
    for t in range(T):
        received, updates = MaskedSum(network.layouts), []
        for i in range(N):
            sent = extract(x, network.layouts, p[i])  # line 6: the p_i sub-model, no more
            trained = train_locally(network, sent, p[i], data[i], rng)  # lines 10 to 12
            received = received.add(trained, p[i])
            # Everybody holds the p_min sub-model: updates are compared there.
            before, after = (extract(of, network.layouts, P_MIN) for of in (sent, trained))
            updates.append(np.concatenate([(after[k] - before[k]).ravel() for k in before]))
        c_now = cosines_with_mean(np.stack(updates))  # line 15
        # Line 16, equation 4: c_i <- gamma c_i + (1 - gamma) c~_i; in round 0 c~_i itself.
        gamma = GAMMA if t > 0 else 0.0
        c = [gamma * c[i] + (1 - gamma) * c_now[i] for i in range(N)]
        # Line 17, equation 5: p_i = nu(c_i / max c), where nu rounds down to a width of the
        # ladder and never goes below p_min. The largest contributor gets the full model.
        p = [max(w for w in widths if w <= max(c_i / max(c), widths[0])) for c_i in c]
        x = received.mean(x)  # line 18: masked averaging over those that hold an entry
    rewards = [extract(x, network.layouts, p_i) for p_i in p]
    return Outcome(c, p, [accuracy(network, rewards[i], p[i], validation) for i in range(N)])


def report(title: str, outcome: Outcome, standalone: list[float]) -> None:
    """Print who got what; gains and Pearson's rho are against the standalone accuracies."""
    print(f"{title}\n  examples  contribution  width  accuracy  gain")
    for size, c_i, p_i, a_i, alone in zip(SIZES, *outcome, standalone, strict=True):
        print(f"  {size:8}  {c_i:12.3f}  {p_i:5.2f}  {a_i:8.1%}  {100 * (a_i - alone):+.1f} pp")
    rho = np.corrcoef(outcome.accuracies, standalone)[0, 1]
    print(f"  Pearson {rho:.3f} between reward accuracy and standalone accuracy\n")


def main() -> tuple[list[float], Outcome, Outcome]:
    """Run both algorithms; return the standalone accuracies and what each algorithm gave."""
    torch.set_num_threads(1)
    data, validation = make_federation()
    standalone = standalone_accuracies(data, validation)
    first = algorithm_1(data, validation, standalone)
    second = algorithm_2(data, validation)
    report("Algorithm 1: rewards after training", first, standalone)
    report("Algorithm 2: rewards while training", second, standalone)
    return standalone, first, second


if __name__ == "__main__":
    main()
