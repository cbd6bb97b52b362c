"""Aequa in one file: the paper's two algorithms on scikit-learn's digits, to read beside it.

    python examples/aequa_in_one_file.py

Names, equations and line numbers are those of Tastan, Horvath and Nandakumar, "Aequa: Fair Model
Rewards in Collaborative Learning via Slimmable Networks" (ICML 2025). Four participants hold
different numbers of examples. In Algorithm 1 everybody trains the full model, and rewards are
allocated after training. In Algorithm 2 everybody trains only the sub-model it has earned so far.
Here the participants are simulated in a loop; `aequa_flwr.simulate` does the same on Flower.
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

SIZES = (30, 60, 120, 240)  # examples of each participant
N, T = len(SIZES), 20  # participants, rounds
P_MIN, P_MAX = 0.25, 1.0  # narrowest and widest sub-model
GAMMA = 0.5  # momentum of the contributions in Algorithm 2
BATCH, LEARNING_RATE, MOMENTUM = 8, 0.02, 0.9
Examples = tuple[Tensor, Tensor]  # (z, y): inputs and labels


class Outcome(NamedTuple):
    """For each participant its contribution c_i, its reward's width p_i and accuracy a_i."""

    contributions: list[float]
    widths: list[float]
    accuracies: list[float]


def make_data() -> tuple[list[Examples], Examples]:
    """Return the data D_i of each participant, and the server's validation data."""
    digits = load_digits()
    z = torch.tensor(digits.images[:, None] / 8 - 1, dtype=torch.float32)
    y = torch.tensor(digits.target)
    order = np.random.default_rng(0).permutation(len(y))
    *shares, rest = np.split(order, np.cumsum(SIZES))
    return [(z[rows], y[rows]) for rows in shares], (z[rest], y[rest])


def make_network() -> SlimNetwork:
    """Return a network of one convolution and two linear layers that runs at any width."""
    return build_network("small-cnn", Schema.numbered("images", (1, 8, 8), 10))


def local_training(
    network: SlimNetwork,
    x: Params,
    p_max: float,
    data: Examples,
    rng: np.random.Generator,
    *,
    alone: bool = False,
) -> dict[str, NDArray]:
    """Return the sub-model ``x`` of width ``p_max`` after one epoch on ``data``.

    Lines 4 to 7 of Algorithm 1, lines 9 to 13 of Algorithm 2. ``alone`` trains one width only.
    """
    z, y = data
    network.load(x, p_max)
    optimizer = torch.optim.SGD(network.parameters(), LEARNING_RATE, MOMENTUM)
    for rows in np.array_split(rng.permutation(len(y)), len(y) // BATCH):
        # Sample p from U[p_min, p_max]; update the sub-models of p_max and of p on one batch.
        p = None if alone else float(network.draw(rng, P_MIN, p_max, 1)[0])
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
        return float(balanced_accuracy_score(y, network(z, p).argmax(dim=1)))


def standalone_accuracies(data: Sequence[Examples], validation: Examples) -> list[float]:
    """Return what each participant reaches alone in T epochs: the paper's contributions c_i."""
    accuracies = []
    for i in range(N):
        network, rng = make_network(), np.random.default_rng(i)
        x = network.dump()
        for _ in range(T):
            x = local_training(network, x, P_MAX, data[i], rng, alone=True)
        accuracies.append(accuracy(network, x, P_MAX, validation))
    return accuracies


def algorithm_1(data: Sequence[Examples], validation: Examples, c: list[float]) -> Outcome:
    """Train the full model together; then allocate rewards (Algorithm 1, section 4.2)."""
    network, rng = make_network(), np.random.default_rng(N)
    x = network.dump()
    for _t in range(T):
        received = MaskedSum(network.layouts)
        for i in range(N):  # lines 2 and 3: everybody trains the full model
            received = received.add(local_training(network, x, P_MAX, data[i], rng))
        x = received.mean(x)  # line 10: x^(t+1) = 1/N sum_i x_(i,E)^t

    # The models to choose from: every distinct sub-model, and its accuracy a_k.
    widths = network.ladder(P_MIN, P_MAX)
    a = [accuracy(network, extract(x, network.layouts, p), p, validation) for p in widths]
    # Equation 3: minimise f(a) = -E[u(a)] / (Var[u(a)] + epsilon), where u_i(a) = a_i - c_i is
    # the gain (equation 2), subject to u_i(a) >= 0 (individual rationality).
    chosen = allocate(c, a).index
    return Outcome(c, [widths[k] for k in chosen], [a[k] for k in chosen])


def assess(updates: NDArray) -> list[float]:
    """Return c~_i, the cosine of each update with the mean update, as CGSV assesses (CA)."""
    mean = updates.mean(axis=0)
    cosines = updates @ mean / np.linalg.norm(updates, axis=1) / np.linalg.norm(mean)
    return [float(cosine) for cosine in cosines]


def algorithm_2(data: Sequence[Examples], validation: Examples) -> Outcome:
    """Let everybody train the sub-model it has earned so far (Algorithm 2, section 4.3)."""
    network, rng = make_network(), np.random.default_rng(N)
    x, widths = network.dump(), network.ladder(P_MIN, P_MAX)
    p, c = [P_MAX] * N, [0.0] * N  # line 3: in round 0 everybody gets the full model
    for t in range(T):
        received, updates = MaskedSum(network.layouts), []
        for i in range(N):
            sent = extract(x, network.layouts, p[i])  # line 6: the p_i sub-model and no more
            trained = local_training(network, sent, p[i], data[i], rng)
            received = received.add(trained, p[i])
            # Updates are compared on the p_min sub-model, which everybody trains.
            before, after = (extract(model, network.layouts, P_MIN) for model in (sent, trained))
            updates.append(np.concatenate([(after[k] - before[k]).ravel() for k in before]))
        c_now = assess(np.stack(updates))  # line 15
        # Line 16, equation 4: c_i <- gamma c_i + (1 - gamma) c~_i, and c~_i itself in round 0.
        gamma = GAMMA if t > 0 else 0.0
        c = [gamma * c[i] + (1 - gamma) * c_now[i] for i in range(N)]
        # Line 17, equation 5: p_i = nu(c_i / max c). Here nu rounds down to a width of the
        # ladder, never below its first; the largest contributor gets the full model.
        p = [max(w for w in widths if w <= max(c_i / max(c), widths[0])) for c_i in c]
        x = received.mean(x)  # line 18: each entry's mean over those that hold it
    rewards = [extract(x, network.layouts, p_i) for p_i in p]
    return Outcome(c, p, [accuracy(network, rewards[i], p[i], validation) for i in range(N)])


def report(title: str, outcome: Outcome, standalone: list[float]) -> None:
    """Print who got what; gains and Pearson's rho compare with the standalone accuracies."""
    print(f"{title}\n  examples  contribution  width  accuracy  gain")
    for size, c_i, p_i, a_i, alone in zip(SIZES, *outcome, standalone, strict=True):
        print(f"  {size:8}  {c_i:12.3f}  {p_i:5.2f}  {a_i:8.1%}  {100 * (a_i - alone):+.1f} pp")
    rho = np.corrcoef(outcome.accuracies, standalone)[0, 1]
    print(f"  Pearson {rho:.3f} between reward accuracies and standalone accuracies\n")


def main() -> tuple[list[float], Outcome, Outcome]:
    """Run both algorithms; return the standalone accuracies and what each algorithm gave."""
    torch.set_num_threads(1)
    data, validation = make_data()
    standalone = standalone_accuracies(data, validation)
    first = algorithm_1(data, validation, standalone)
    second = algorithm_2(data, validation)
    report("Algorithm 1: rewards after training", first, standalone)
    report("Algorithm 2: rewards while training", second, standalone)
    return standalone, first, second


if __name__ == "__main__":
    main()
