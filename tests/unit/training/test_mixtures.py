"""Mixtures of updates, held against models built one by one in the slimmable network."""

import copy
import dataclasses
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor, nn

from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Layout, NDArray, Params, embed
from aequa_flwr.slim.networks import (
    BUILDERS,
    Channelwise,
    PlainLayer,
    SlimLayer,
    SlimLinear,
    SlimNetwork,
)
from aequa_flwr.training import Compute, Resident, balanced_accuracies, choose_compute
from aequa_flwr.training.mixtures import Floats, Mixtures, subset
from tests.property.networks import SCHEMAS, network_and_batch

CPU = choose_compute("cpu", "float32")
WIDTH = 0.4
PARTICIPANTS = 4
EXAMPLES = 80  # more than one batch of the CNN, and every class of the data with 62
OWN = Schema.numbered("numbers", (2, 10, 10), 5)


class Depthwise(SlimLayer):
    """A user's own first layer: its channels do not all see the whole input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 1, 3, 3))

    def forward(self, x: Tensor, width: float) -> Tensor:
        return F.conv2d(x, self.weight, groups=2)

    @property
    def layouts(self) -> dict[str, Layout]:
        return {"weight": (4, 1, 3, 3)}

    def plain(self, width: float) -> PlainLayer:
        sizes = {"in_channels": 2, "out_channels": 4, "kernel_size": 3}
        return PlainLayer("Conv2d", {**sizes, "groups": 2, "bias": False})


def grouped_network() -> SlimNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return SlimNetwork(
            {
                "tanh": Channelwise("Tanh"),
                "depthwise": Depthwise(),
                "flatten": Channelwise("Flatten"),
                "fc1": SlimLinear(4 * 64, 6, slim_in=False),
                "relu": Channelwise("ReLU"),
                "fc2": SlimLinear(6, 5, slim_out=False),
            }
        )


@dataclasses.dataclass(frozen=True)
class Case:
    """A network, what everybody received, what came back, and data to judge it on."""

    network: SlimNetwork
    whole: Params
    received: Params
    updates: dict[str, NDArray]
    data: Resident
    compute: Compute = CPU

    def mixtures(self, most_examples: int = 0) -> Mixtures:
        return Mixtures(
            self.network,
            WIDTH,
            self.received,
            self.updates,
            self.data,
            self.compute,
            most_examples=most_examples,
        )

    def expected(self, weights: Floats) -> tuple[float, float]:
        """The oracle: the sum in a full network, whose other entries are garbage."""
        sub_params = {
            name: (value + np.tensordot(weights, self.updates[name], 1)).astype(np.float32)
            for name, value in self.received.items()
        }
        garbage = {name: np.full(v.shape, 1e6, v.dtype) for name, v in self.whole.items()}
        full = copy.deepcopy(self.network)
        full.load(embed(sub_params, self.network.layouts, WIDTH, garbage))
        x, y = self.data.batch(slice(None))
        with torch.no_grad():
            logits = full(x, WIDTH)
        accuracy = balanced_accuracy_score(y.numpy(), logits.argmax(1).numpy())
        return float(accuracy), float(F.cross_entropy(logits, y))


@cache
def case(name: str) -> Case:
    """BatchNorm's variances only grow, so that every mixture is a model."""
    network = grouped_network() if name == "grouped" else network_and_batch(name)[0]
    schema, rng = SCHEMAS.get(name, OWN), rng_for(5, name)
    received = network.dump(WIDTH)
    updates = {
        key: value.std() * rng.standard_normal((PARTICIPANTS, *value.shape), dtype=np.float32)
        for key, value in received.items()
    }
    updates |= {key: np.abs(updates[key]) for key in updates if key.endswith("running_var")}
    y = np.arange(EXAMPLES) % schema.num_classes
    data = CPU.resident(Examples(inputs(schema), y), schema)
    return Case(network.eval(), network.dump(), received, updates, data)


def inputs(schema: Schema) -> npt.NDArray[np.generic]:
    rng, shape = rng_for(6), (EXAMPLES, *schema.shape)
    if schema.kind == "tokens":
        tokens = rng.integers(1, schema.num_tokens, shape, dtype=np.int32)
        tokens[np.arange(shape[1]) >= rng.integers(0, shape[1] + 1, (EXAMPLES, 1))] = 0
        return tokens
    # Examples that differ as a whole: a network averages noise away and sees one class in all.
    bright = rng.random((EXAMPLES, *[1] * len(schema.shape)))
    if schema.kind == "images":
        return (255 * bright * rng.random(shape)).astype(np.uint8)
    return (20 * bright - 10 + rng.normal(size=shape)).astype(np.float32)


def some_weights() -> Floats:
    """Everybody alone, nobody, and more: not a multiple of how many models run together."""
    rng = rng_for(7)
    any_of_them = rng.random((6, PARTICIPANTS)) * (rng.random((6, PARTICIPANTS)) < 0.6)
    return np.concatenate([np.eye(PARTICIPANTS), np.zeros((1, PARTICIPANTS)), any_of_them])


EVERY = pytest.mark.parametrize("name", [*BUILDERS, "deep", "residual", "grouped"])


@EVERY
def test_a_mixture_scores_as_the_model_built_by_hand(name: str) -> None:
    one, weights = case(name), some_weights()
    accuracies, losses = one.mixtures().score(weights)
    expected = [one.expected(row) for row in weights]
    np.testing.assert_allclose(accuracies, [accuracy for accuracy, _ in expected], atol=1e-9)
    np.testing.assert_allclose(losses, [loss for _, loss in expected], rtol=1e-5)
    assert len(set(losses)) == len(weights)


@EVERY
def test_a_row_scores_the_same_in_any_company(name: str) -> None:
    mixtures, weights = case(name).mixtures(), some_weights()
    accuracies, losses = mixtures.score(weights)
    order = rng_for(8).permutation(len(weights))
    alone = [mixtures.score(row[None]) for row in weights]
    for other_accuracies, other_losses in (
        [np.concatenate(part) for part in zip(*alone, strict=True)],
        [part[np.argsort(order)] for part in mixtures.score(weights[order])],
    ):
        np.testing.assert_array_equal(other_accuracies, accuracies)
        np.testing.assert_allclose(other_losses, losses, rtol=1e-6)


@pytest.mark.parametrize("name", ["cnn", "lstm", "residual"])
@torch.no_grad()
def test_zeros_are_the_received_model_and_a_one_is_a_participants(name: str) -> None:
    one = case(name)
    x, y = one.data.batch(slice(None))
    trained = {key: one.received[key] + one.updates[key] for key in one.received}
    accuracies, losses = one.mixtures().score(some_weights()[: PARTICIPANTS + 1])
    for row in range(PARTICIPANTS + 1):
        alone = {key: value[row] for key, value in trained.items()} if row < PARTICIPANTS else None
        full = copy.deepcopy(one.network)
        full.load(alone or one.received, WIDTH)
        assert accuracies[row] == balanced_accuracies(full, (WIDTH,), one.data, CPU)[0]
        assert losses[row] == pytest.approx(float(F.cross_entropy(full(x, WIDTH), y)), rel=1e-6)


def test_who_is_not_in_a_coalition_cannot_spoil_it() -> None:
    one = case("small-cnn")
    broken = {key: value.copy() for key, value in one.updates.items()}
    for value in broken.values():
        value[0] = np.nan
    mixtures = dataclasses.replace(one, updates=broken).mixtures()
    weights = np.array([[0, 0.5, 0.5, 0], [0.5, 0.5, 0, 0]])
    accuracies, losses = mixtures.score(weights)
    assert (accuracies[0], losses[0]) == tuple(part[0] for part in one.mixtures().score(weights))
    assert np.isnan(losses[1])


def test_no_models_and_a_single_participant() -> None:
    one = case("small-cnn")
    accuracies, losses = one.mixtures().score(np.zeros((0, PARTICIPANTS)))
    assert accuracies.shape == losses.shape == (0,)
    assert accuracies.dtype == losses.dtype == np.float64
    first = {key: value[:1] for key, value in one.updates.items()}
    alone = dataclasses.replace(one, updates=first).mixtures().score(np.array([[0.0], [1.0]]))
    among = one.mixtures().score(np.array([[0.0, 0, 0, 0], [1, 0, 0, 0]]))
    np.testing.assert_array_equal(alone, among)
    with pytest.raises(ValueError, match="zip"):
        one.mixtures().score(np.zeros((1, PARTICIPANTS - 1)))


def test_the_order_of_the_participants_does_not_matter() -> None:
    one, weights = case("small-cnn"), some_weights()
    order = rng_for(9).permutation(PARTICIPANTS)
    shuffled = {key: value[order] for key, value in one.updates.items()}
    permuted = dataclasses.replace(one, updates=shuffled).mixtures().score(weights[:, order])
    np.testing.assert_allclose(permuted, one.mixtures().score(weights), rtol=1e-7)


def test_a_class_without_examples_does_not_count() -> None:
    one = case("mlp")
    without = dataclasses.replace(one.data, rows=one.data.rows[one.data.labels != 2])
    weights = some_weights()
    accuracies, _ = dataclasses.replace(one, data=without).mixtures().score(weights)
    for row, accuracy in zip(weights, accuracies, strict=True):
        mixed = {
            key: (value + np.tensordot(row, one.updates[key], 1)).astype(np.float32)
            for key, value in one.received.items()
        }
        full = copy.deepcopy(one.network)
        full.load(mixed, WIDTH)
        assert accuracy == balanced_accuracies(full, (WIDTH,), without, CPU)[0]


@pytest.mark.parametrize("name", ["resnet18", "lstm"])
def test_nothing_that_was_passed_in_changes(name: str) -> None:
    one = case(name)
    network = copy.deepcopy(one.network).train()
    copies = {key: value.copy() for key, value in one.updates.items()}
    state, weights = torch.random.get_rng_state(), some_weights()
    dataclasses.replace(one, network=network).mixtures().score(weights)
    assert network.training
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(weights, some_weights())
    for key, value in network.dump().items():
        np.testing.assert_array_equal(value, one.whole[key])
        np.testing.assert_array_equal(one.updates[key], copies[key])


def test_mixed_precision_scores_nearly_the_same() -> None:
    one, weights = case("residual"), some_weights()
    _, exact = one.mixtures().score(weights)
    mixed = dataclasses.replace(one, compute=choose_compute("cpu", "bfloat16"))
    _, losses = mixed.mixtures().score(weights)
    np.testing.assert_allclose(losses, exact, rtol=0.05)
    assert not np.array_equal(losses, exact)


def resident(sizes: Sequence[int]) -> Resident:
    """Examples of one number, their position; classes in a shuffled order."""
    y = rng_for(3).permutation(np.repeat(np.arange(len(sizes)), sizes))
    x = np.arange(len(y), dtype=np.float32)[:, None]
    return CPU.resident(Examples(x, y), Schema.numbered("numbers", (1,), len(sizes)))


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ((500, 300, 200), 100, (50, 30, 20)),
        ((500, 300, 0, 3), 80, (49, 30, 0, 1)),  # shares of 49.8, 29.9 and 0.3
        ((10, 10, 10), 10, (4, 3, 3)),
        ((1000, 1, 1), 4, (2, 1, 1)),
        ((7, 2, 2), 10, (6, 2, 2)),
        ((9, 9, 9), 2, (1, 1, 1)),  # a class is never left out
        ((5, 4), 9, (5, 4)),
        ((5, 4), 0, (5, 4)),
    ],
)
def test_a_subset_keeps_the_share_of_every_class(
    sizes: tuple[int, ...], most: int, expected: tuple[int, ...]
) -> None:
    data = resident(sizes)
    chosen = subset(data, most)
    assert np.bincount(chosen.labels.numpy(), minlength=len(sizes)).tolist() == list(expected)
    assert torch.equal(chosen.rows, subset(data, most).rows)
    rows = chosen.rows.tolist()
    assert rows == sorted(set(rows))
    for label, taken in enumerate(expected):
        members = np.flatnonzero(data.labels.numpy() == label)
        at = np.searchsorted(members, np.array(rows)[chosen.labels.numpy() == label])
        # As evenly spaced as whole numbers can be, and no nearer to one end than the other.
        ends = [at[0], sizes[label] - 1 - at[-1]] if taken else [0]
        assert np.ptp(ends) <= 1
        assert taken < 2 or np.ptp(np.diff(at)) <= 1


def test_a_subset_of_few_rows_is_chosen_among_them() -> None:
    """A Resident may be some rows of a larger set."""
    data = resident((40, 40))
    few = dataclasses.replace(data, rows=torch.arange(11, 71, 2))
    chosen = subset(few, 8)
    assert len(chosen) == 8
    assert set(chosen.rows.tolist()) < set(few.rows.tolist())


def test_scores_on_a_subset_are_those_of_its_examples() -> None:
    one, weights = case("small-cnn"), some_weights()
    fewer = dataclasses.replace(one, data=subset(one.data, 30))
    assert len(fewer.data) == 30
    np.testing.assert_array_equal(
        one.mixtures(most_examples=30).score(weights), fewer.mixtures().score(weights)
    )
