"""Switchable BatchNorm through training, averaging, extraction and rewards."""

from copy import deepcopy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from aequa_flwr.aggregation import AggregationError, MaskedSum
from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Axis, BnRows, Layouts, Params, embed, extract
from aequa_flwr.slim.networks import (
    Channelwise,
    SlimBatchNorm2d,
    SlimConv2d,
    SlimLinear,
    SlimNetwork,
    build_plain,
)
from aequa_flwr.slim.networks.layers import BN_WIDTHS
from aequa_flwr.training import (
    Host,
    LocalPlan,
    Resident,
    ServerData,
    choose_compute,
    sandwich_loss,
    train_locally,
)
from tests.property.networks import gradients, network_and_batch, residual_network

CPU = choose_compute("cpu", "float32")
THREE = (0.25, 0.5, 1.0)
LAYOUTS: Layouts = {"w": (Axis(6), 2), "bn": (BnRows(THREE), Axis(6))}
# (seed, level of the participant's width, weight, which of its levels it trained)
ADDENDS = st.lists(
    st.tuples(
        st.integers(0, 99), st.integers(0, 2), st.integers(1, 500), st.sets(st.integers(0, 2))
    ),
    max_size=5,
)
Addend = tuple[int, int, int, set[int]]


def params_of(seed: int) -> Params:
    rng = rng_for(seed, "batch norm")
    shapes: dict[str, tuple[int, ...]] = {"w": (6, 2), "bn": (3, 6)}
    return {k: rng.normal(0, 3, shape).astype(np.float32) for k, shape in shapes.items()}


def fold(addends: list[Addend]) -> MaskedSum:
    total = MaskedSum(LAYOUTS)
    for seed, level, weight, levels in addends:
        sub = extract(params_of(seed), LAYOUTS, THREE[level])
        total = total.add(sub, THREE[level], weight, {k for k in levels if k <= level})
    return total


@given(addends=ADDENDS)
def test_a_level_is_averaged_over_those_who_trained_it_and_else_keeps_its_own(
    addends: list[Addend],
) -> None:
    fallback = params_of(1000)
    mean = fold(addends).mean(fallback)["bn"]
    for row, width in enumerate(THREE):
        who = [a for a in addends if row in a[3] and row <= a[1]]
        for channel in range(6):
            used = channel < np.ceil(width * 6)
            if not who or not used:
                assert mean[row, channel] == fallback["bn"][row, channel]
                continue
            values = [params_of(a[0])["bn"][row, channel] for a in who]
            expected = np.average(values, weights=[a[2] for a in who])
            assert mean[row, channel] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@given(a=ADDENDS, b=ADDENDS, c=ADDENDS)
def test_merging_is_associative_with_levels_too(
    a: list[Addend], b: list[Addend], c: list[Addend]
) -> None:
    x, y, z = fold(a), fold(b), fold(c)
    one, other = x.merge(y).merge(z), z.merge(x.merge(y))
    assert one.bn_row_weights == other.bn_row_weights
    for key in one.sums:
        np.testing.assert_array_equal(one.sums[key], other.sums[key])


def test_a_level_beyond_the_width_is_refused() -> None:
    with pytest.raises(AggregationError, match="does not hold"):
        MaskedSum(LAYOUTS).add(extract(params_of(1), LAYOUTS, 0.5), 0.5, 1, {2})


@given(level=st.integers(0, len(BN_WIDTHS) - 1))
def test_a_sub_network_carries_the_statistics_up_to_its_own_level_and_a_reward_one_set(
    level: int,
) -> None:
    width = BN_WIDTHS[level]
    network = residual_network()
    for row in range(len(BN_WIDTHS)):
        bn = network.get_submodule("block.main.bn")
        assert isinstance(bn, SlimBatchNorm2d)
        bn.running_mean[row] = row
        bn.running_var[row] = row + 1
    sub = extract(network.dump(), network.layouts, width)
    assert set(np.unique(sub["block.main.bn.running_mean"])) == set(range(level + 1))
    size = int(np.ceil(width * 7 - 1e-9))
    assert sub["block.main.bn.running_mean"].shape == (level + 1, size)
    reward = network.plain_params(sub, width)
    assert reward["block.main.bn.running_mean"].tolist() == [level] * size
    module = build_plain(network.plain(width), reward)
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert len(norms) == 1
    assert type(norms[0]) is nn.BatchNorm2d
    assert norms[0].running_var is not None
    assert norms[0].running_var.tolist() == [level + 1] * size


def resident(count: int = 40) -> Resident:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 2, 10, 10, generator=generator) * 3 + 1
    y = torch.randint(0, 5, (count,), generator=generator)
    schema = Schema.numbered("numbers", (2, 10, 10), 5)
    return CPU.resident(Examples(x.numpy(), y.numpy()), schema)


@pytest.mark.parametrize("name", ["residual", "resnet18"])
@settings(max_examples=3, deadline=None)
@given(pair=st.tuples(st.sampled_from(BN_WIDTHS), st.sampled_from(BN_WIDTHS)).map(sorted))
def test_one_pass_equals_two_passes_in_training_statistics_included(
    name: str, pair: list[float]
) -> None:
    narrow, wide = pair
    evaluated, inputs = network_and_batch(name)
    # In float64: BatchNorm over six values makes much of a last bit.
    x, y = inputs.double(), torch.arange(len(inputs)) % 5
    one, two = (deepcopy(evaluated).double().train() for _ in range(2))
    loss, _ = sandwich_loss(one, x, y, wide, narrow)
    loss.backward()  # type: ignore[no-untyped-call]
    # One sub-network twice is one forward: its statistics count the batch once.
    for width in {narrow, wide}:
        times = pair.count(width)
        (times * F.cross_entropy(two(x, width), y)).backward()  # type: ignore[no-untyped-call]
    for (key, tensor), other in zip(
        one.state_dict().items(), two.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(tensor, other, msg=key)
    for key, gradient in gradients(two).items():
        torch.testing.assert_close(gradients(one)[key], gradient, msg=key)


@settings(max_examples=8, deadline=None)
@given(level=st.integers(0, len(BN_WIDTHS) - 1))
def test_in_training_a_row_follows_torchs_own_batch_norm(level: int) -> None:
    size = int(np.ceil(BN_WIDTHS[level] * 7 - 1e-9))
    ours, torchs = SlimBatchNorm2d(7), nn.BatchNorm2d(size)
    before = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
    for step in range(3):
        x = torch.randn(4, size, 5, 5, generator=torch.Generator().manual_seed(step))
        torch.testing.assert_close(ours(x, BN_WIDTHS[level]), torchs(x))
    assert torchs.running_mean is not None
    torch.testing.assert_close(ours.running_mean[level, :size], torchs.running_mean)
    torch.testing.assert_close(ours.running_var[level, :size], torchs.running_var)
    for name, tensor in ours.state_dict().items():
        others = [row for row in range(len(BN_WIDTHS)) if row != level]
        assert torch.equal(tensor[others], before[name][others])


def test_local_training_says_which_rows_it_trained_and_touches_no_other() -> None:
    network = residual_network()
    received = network.dump()
    plan = LocalPlan((0.05,), 16, 0.9, p_min=0.25)
    result = train_locally(network, received, 1.0, resident(), plan, rng_for(3), CPU)
    assert 2 <= len(result.bn_rows) <= 4  # the widest, and one for each of three batches
    assert result.bn_rows[-1] == len(BN_WIDTHS) - 1
    for key in ("weight", "bias", "running_mean", "running_var"):
        before, after = received[f"block.main.bn.{key}"], result.params[f"block.main.bn.{key}"]
        changed = {
            row for row in range(len(BN_WIDTHS)) if not np.array_equal(before[row], after[row])
        }
        assert changed == set(result.bn_rows)


def test_a_narrower_p_min_is_trained_and_rewarded() -> None:
    network = residual_network()
    assert network.ladder(0.25, 1.0) == BN_WIDTHS[4:]
    assert network.ladder(0.1, 1.0) == BN_WIDTHS[1:]
    plan = LocalPlan((0.05,), 2, 0.9, p_min=0.1)
    result = train_locally(network, network.dump(), 1.0, resident(), plan, rng_for(3), CPU)
    assert min(result.bn_rows) < 4


def test_a_single_last_example_joins_the_batch_before_it() -> None:
    network = residual_network()
    plan = LocalPlan((0.05,), 13, 0.9, p_min=None)
    one_left = train_locally(network, network.dump(), 1.0, resident(40), plan, rng_for(3), CPU)
    assert np.isfinite(one_left.loss)


def test_one_example_that_cannot_be_normalised_is_that_participants_failure() -> None:
    network = SlimNetwork(
        {
            "pool": Channelwise("AdaptiveAvgPool2d", output_size=1),
            "conv": SlimConv2d(2, 4, 1, slim_in=False),
            "bn": SlimBatchNorm2d(4),
            "flatten": Channelwise("Flatten"),
            "fc": SlimLinear(4, 5, slim_out=False),
        }
    )
    data = {"small": resident(1), "large": resident(8)}
    host = Host(network, CPU, data.__getitem__, seed=1)
    plan = LocalPlan((0.05,), 16, 0.9, p_min=None)
    part = host.train_round(1, {"small": 1.0, "large": 1.0}, network.dump(), plan)
    assert [line.name for line in part.trained] == ["large"]
    assert part.refused is not None
    assert "BatchNorm cannot normalise a single example" in part.refused["small"]
    _, refused = host.train_alone(["small", "large"], network.dump(), plan)
    assert list(refused) == ["small"]


def test_calibration_gives_an_untrained_level_its_statistics_and_no_other() -> None:
    network = residual_network()
    data = resident(600)
    server = ServerData(network, CPU, data, None)
    params = network.dump()
    widest = len(BN_WIDTHS) - 1
    params = {k: v + (0.25 if k.endswith("bn.weight") else 0) for k, v in params.items()}
    params["block.main.bn.weight"][:widest] = 1.0
    done = server.calibrate(params, (0.5,), (widest,))
    level = BN_WIDTHS.index(0.5)
    for key, value in done.items():
        if ".bn." not in key:
            np.testing.assert_array_equal(value, params[key])
            continue
        others = [row for row in range(len(BN_WIDTHS)) if row != level]
        np.testing.assert_array_equal(value[others], params[key][others])
    # The neighbour's affine terms, and the mean of the batches' own statistics.
    assert done["block.main.bn.weight"][level, :4].tolist() == [1.25] * 4
    network.load(params)
    inputs: list[torch.Tensor] = []
    conv = network.get_submodule("block.main.conv")
    conv.register_forward_hook(lambda _layer, _args, output: inputs.append(output.detach()))
    for start in (0, 256, 512):
        network(data.batch(slice(start, start + 256))[0], 0.5)
    mean = torch.stack([x.mean(dim=(0, 2, 3)) for x in inputs]).mean(0)
    np.testing.assert_allclose(
        done["block.main.bn.running_mean"][level, :4], mean.numpy(), rtol=1e-4, atol=1e-5
    )


def test_embed_keeps_the_rows_of_wider_levels() -> None:
    network = residual_network()
    whole = network.dump()
    sub = {k: v + 1 for k, v in extract(whole, network.layouts, 0.5).items()}
    back = embed(sub, network.layouts, 0.5, whole)
    level = BN_WIDTHS.index(0.5)
    rows = back["block.main.bn.running_var"]
    assert (rows[: level + 1, :4] == 2).all()
    assert (rows[level + 1 :] == 1).all()
