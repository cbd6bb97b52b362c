"""Laws of slimmable networks, each against plain torch or plain NumPy."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Axis, Layouts, Params, embed, extract, shape_at
from aequa_flwr.slim.networks import (
    BUILDERS,
    MeanState,
    Nested,
    Residual,
    SlimConv2d,
    SlimLinear,
    SlimNetwork,
    build_plain,
)
from aequa_flwr.training import sandwich_loss
from tests.property.networks import deep_network, gradients, network_and_batch

WIDTH = st.floats(0.05, 1.0)
NETWORKS = pytest.mark.parametrize("name", [*BUILDERS, "deep", "residual"])


def plain_forward(network: SlimNetwork, x: torch.Tensor, width: float) -> torch.Tensor:
    """The oracle: torch's own layers, built small, holding the slice."""
    params = network.plain_params(network.dump(width), width)
    module = build_plain(network.plain(width), params)
    ours = {type(layer) for layer in module.modules() if "aequa" in type(layer).__module__}
    assert ours <= {Residual, MeanState}
    result: torch.Tensor = module(x)
    return result


@NETWORKS
@settings(max_examples=8, deadline=None)
@given(width=WIDTH)
def test_slim_equals_plain_torch_on_the_slice(name: str, width: float) -> None:
    network, x = network_and_batch(name)
    torch.testing.assert_close(network(x, width), plain_forward(network, x, width))


@NETWORKS
@settings(max_examples=8, deadline=None)
@given(widths=st.lists(WIDTH, min_size=1, max_size=6).map(sorted))
def test_one_nested_pass_equals_a_pass_for_each_width(name: str, widths: list[float]) -> None:
    network, x = network_and_batch(name)
    together = network.forward_nested(x, widths)
    assert len(together) == len(widths)
    for logits, width in zip(together, widths, strict=True):
        torch.testing.assert_close(logits, network(x, width), rtol=1e-5, atol=1e-6)


@NETWORKS
@settings(max_examples=8, deadline=None)
@given(pair=st.tuples(WIDTH, WIDTH).map(sorted))
def test_one_pass_gradients_equal_two_pass_gradients(name: str, pair: list[float]) -> None:
    narrow, wide = pair
    network, x = network_and_batch(name)
    y = torch.arange(len(x)) % 5
    network.zero_grad()
    loss, _ = sandwich_loss(network, x, y, wide, narrow)
    loss.backward()  # type: ignore[no-untyped-call]
    one_pass = gradients(network)
    network.zero_grad()
    for width in (wide, narrow):
        F.cross_entropy(network(x, width), y).backward()  # type: ignore[no-untyped-call]
    for parameter, gradient in gradients(network).items():
        torch.testing.assert_close(one_pass[parameter], gradient, rtol=3e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["convolution", "linear"])
@settings(max_examples=40, deadline=None)
@given(inputs=st.integers(1, 70), widths=st.lists(WIDTH, min_size=1, max_size=4).map(sorted))
def test_a_layer_cut_at_several_widths_has_the_sum_of_their_gradients(
    kind: str, inputs: int, widths: list[float]
) -> None:
    torch.manual_seed(inputs)
    layer: SlimConv2d | SlimLinear
    if kind == "convolution":
        layer = SlimConv2d(inputs, 13, 3, padding=1).double()
        full = torch.randn(2, inputs, 4, 5, dtype=torch.float64)
    else:
        layer = SlimLinear(inputs, 13, in_block=3).double()
        full = torch.randn(2, inputs * 3, dtype=torch.float64)
    assert layer.in_axis is not None
    x = full[:, : layer.in_axis.extent(widths[-1])].requires_grad_()
    apart = [layer(x[:, : layer.in_axis.extent(width)], width) for width in widths]
    together = layer.forward_joint(Nested(x, layer.in_axis), widths)
    assert isinstance(together, tuple)
    incoming = [torch.randn_like(output) for output in apart]
    wanted = [x, *layer.parameters()]
    expected = torch.autograd.grad(apart, wanted, incoming)
    for found, right in zip(torch.autograd.grad(together, wanted, incoming), expected, strict=True):
        torch.testing.assert_close(found, right)


@NETWORKS
def test_layouts_cover_every_parameter_and_its_full_size(name: str) -> None:
    network, _ = network_and_batch(name)
    tensors = network.state_dict()
    assert network.layouts.keys() == tensors.keys()
    for key, layout in network.layouts.items():
        assert shape_at(layout) == tuple(tensors[key].shape)


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
