"""The paper's networks against its counts."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks import BUILDERS, NetworkError, build_network
from tests.property.networks import SCHEMAS

IMAGES = Schema.numbered("images", (3, 32, 32), 10)
SST = Schema.texts(52, 18_278, 5)
GREY = Schema.numbered("images", (1, 28, 28), 10)


@pytest.mark.parametrize(
    ("name", "schema", "count"),
    [
        ("cnn", GREY, 60_616),
        ("small-cnn", Schema.numbered("images", (1, 8, 8), 10), 4_200),
        ("large-cnn", IMAGES, 2_156_490),  # the paper's 2.0566 M, where M is 2^20
        ("resnet18", IMAGES, 11_173_962),  # torchvision's 11,181,642 with a 3x3 stem
        ("femnist-cnn", Schema.numbered("images", (1, 28, 28), 62), 246_590),
        ("lstm", SST, 6_096_869),  # the paper's 6.1461 M
    ],
)
def test_counts_are_those_of_the_docstrings(name: str, schema: Schema, count: int) -> None:
    network = build_network(name, schema)
    assert network.num_parameters() == count
    assert f"{count:,}" in (BUILDERS[name].__doc__ or "")


@pytest.mark.parametrize("name", ["large-cnn", "resnet18"])
def test_half_the_width_is_a_quarter_of_the_inner_multiply_adds(name: str) -> None:
    """Counted by torch: all but the first layer, whose input never shrinks."""

    def inner(width: float) -> int:
        network = build_network(name, IMAGES).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network(torch.zeros(1, 3, 32, 32), width)
        with FlopCounterMode(display=False) as first, torch.no_grad():
            network.get_submodule("conv1")(torch.zeros(1, 3, 32, 32), width)
        return int(counter.get_total_flops() - first.get_total_flops())

    assert inner(0.5) / inner(1.0) == pytest.approx(0.25, abs=0.01)
    assert inner(0.25) / inner(1.0) == pytest.approx(1 / 16, abs=0.01)


@pytest.mark.parametrize(
    ("name", "schema", "words"),
    [
        ("cnn", SCHEMAS["lstm"], "takes images, but the examples have shape"),
        ("resnet18", Schema.numbered("images", (3, 4, 4), 2), "of at least 8x8, but these are 4x4"),
        ("lstm", GREY, "takes text, but the examples are images"),
        ("mlp", SCHEMAS["lstm"], "takes numbers, not text"),
        ("vgg", GREY, "is not known; use one of cnn,"),
    ],
)
def test_a_network_that_does_not_fit_the_data_says_so(
    name: str, schema: Schema, words: str
) -> None:
    with pytest.raises(NetworkError, match=words):
        build_network(name, schema)
