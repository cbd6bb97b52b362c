"""Laws of slimmable networks, each against plain torch or plain NumPy."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Axis, Layouts, Params, embed, extract, shape_at
from aequa_flwr.slim.layers import Channelwise, SlimConv2d, SlimLinear
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.networks import BUILDERS, build_network
from aequa_flwr.slim.plain import PlainLayer, build_plain
from aequa_flwr.training import sandwich_loss

WIDTH = st.floats(0.05, 1.0)
SHAPES = {"cnn": (1, 28, 28), "small-cnn": (1, 8, 8)}


def deep_network() -> SlimNetwork:
    """Two convolutions and two linear layers: layers beyond the second run apart."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return SlimNetwork(
            {
                "conv1": SlimConv2d(2, 7, 3, slim_in=False),
                "relu1": Channelwise(PlainLayer("ReLU")),
                "conv2": SlimConv2d(7, 9, 3, slim_in=True),
                "pool": Channelwise(PlainLayer("MaxPool2d", {"kernel_size": 2})),
                "flatten": Channelwise(PlainLayer("Flatten")),
                "fc1": SlimLinear(9, 11, in_block=9),
                "relu2": Channelwise(PlainLayer("ReLU")),
                "fc2": SlimLinear(11, 5, slim_out=False),
            }
        )


def network_and_batch(name: str) -> tuple[SlimNetwork, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    if name == "deep":
        return deep_network(), torch.randn(6, 2, 10, 10, generator=generator)
    return build_network(name, SHAPES[name], 10), torch.randn(6, *SHAPES[name], generator=generator)


NETWORKS = pytest.mark.parametrize("name", [*BUILDERS, "deep"])


def plain_forward(network: SlimNetwork, x: torch.Tensor, width: float) -> torch.Tensor:
    """The oracle: torch's own layers, built small, holding the slice."""
    module = build_plain(network.plain(width), network.dump(width))
    assert all(type(layer).__module__.startswith("torch.nn") for layer in module.children())
    result: torch.Tensor = module(x)
    return result


@NETWORKS
@settings(max_examples=25, deadline=None)
@given(width=WIDTH)
def test_slim_equals_plain_torch_on_the_slice(name: str, width: float) -> None:
    network, x = network_and_batch(name)
    torch.testing.assert_close(network(x, width), plain_forward(network, x, width))


@NETWORKS
@settings(max_examples=25, deadline=None)
@given(widths=st.lists(WIDTH, min_size=1, max_size=6).map(sorted))
def test_one_nested_pass_equals_a_pass_for_each_width(name: str, widths: list[float]) -> None:
    network, x = network_and_batch(name)
    together = network.forward_nested(x, widths)
    for logits, width in zip(together, widths, strict=True):
        torch.testing.assert_close(logits, network(x, width), rtol=1e-5, atol=1e-6)


@NETWORKS
@settings(max_examples=25, deadline=None)
@given(pair=st.tuples(WIDTH, WIDTH).map(sorted))
def test_one_pass_gradients_equal_two_pass_gradients(name: str, pair: list[float]) -> None:
    narrow, wide = pair
    network, x = network_and_batch(name)
    y = torch.arange(len(x)) % 5
    loss, _ = sandwich_loss(network, x, y, wide, narrow)
    loss.backward()  # type: ignore[no-untyped-call]
    one_pass = gradients(network)
    network.zero_grad()
    for width in (wide, narrow):
        F.cross_entropy(network(x, width), y).backward()  # type: ignore[no-untyped-call]
    for parameter, gradient in gradients(network).items():
        torch.testing.assert_close(one_pass[parameter], gradient, rtol=3e-5, atol=1e-7)


def gradients(network: nn.Module) -> dict[str, torch.Tensor]:
    return {k: v.grad.clone() for k, v in network.named_parameters() if v.grad is not None}


@NETWORKS
def test_layouts_cover_every_parameter_and_its_full_size(name: str) -> None:
    network, _ = network_and_batch(name)
    parameters = dict(network.named_parameters())
    assert network.layouts.keys() == parameters.keys()
    for key, layout in network.layouts.items():
        assert shape_at(layout) == tuple(parameters[key].shape)


LAYOUTS: Layouts = {"w": (Axis(8), Axis(5, block=3), 2), "b": (Axis(8),), "c": (4,)}


def random_params(seed: int) -> Params:
    rng = rng_for(seed, "test")
    shapes: dict[str, tuple[int, ...]] = {"w": (8, 15, 2), "b": (8,), "c": (4,)}
    return {k: rng.standard_normal(v).astype(np.float32) for k, v in shapes.items()}


@given(width=WIDTH)
def test_extract_undoes_embed_and_the_rest_is_untouched(width: float) -> None:
    onto, other = random_params(1), random_params(2)
    sub = extract(other, LAYOUTS, width)
    embedded = embed(sub, LAYOUTS, width, onto)
    for key in onto:
        np.testing.assert_array_equal(extract(embedded, LAYOUTS, width)[key], sub[key])
        changed = embedded[key] != onto[key]
        assert changed.sum() <= sub[key].size
        np.testing.assert_array_equal(onto[key], random_params(1)[key])


@given(pair=st.tuples(WIDTH, WIDTH).map(sorted))
def test_narrower_is_a_prefix_of_wider(pair: list[float]) -> None:
    params = random_params(1)
    narrow, wide = (extract(params, LAYOUTS, width) for width in pair)
    again = extract(wide, LAYOUTS, pair[0])
    for key in params:
        np.testing.assert_array_equal(narrow[key], again[key])


def test_an_extract_shares_no_memory_with_the_whole() -> None:
    params = random_params(1)
    for key, value in extract(params, LAYOUTS, 0.3).items():
        assert value.base is None
        assert not np.shares_memory(value, params[key])


@given(width=WIDTH)
def test_load_touches_only_the_prefix_and_dump_returns_it(width: float) -> None:
    network = deep_network()
    before = network.dump()
    sub = {key: value + 1 for key, value in extract(before, network.layouts, width).items()}
    network.load(sub, width)
    expected = embed(sub, network.layouts, width, before)
    for key, value in network.dump().items():
        np.testing.assert_array_equal(value, expected[key])
        np.testing.assert_array_equal(network.dump(width)[key], sub[key])
