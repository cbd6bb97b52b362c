import numpy as np
import pytest
import torch
import torch.nn.functional as F

from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.networks import BUILDERS, build_network, build_plain
from aequa_flwr.training import (
    LocalPlan,
    TrainingError,
    choose_compute,
    sandwich_loss,
    scheduled_rate,
    train_locally,
)
from tests.property.networks import network_and_batch
from tests.unit.training.batches import CPU, SCHEMA, batch, tensors


def plan(p_min: float | None, rates: tuple[float, ...] = (0.05,), **more: bool) -> LocalPlan:
    return LocalPlan(rates, 16, 0.9, p_min, **more)


def test_without_random_widths_it_is_plain_sgd_on_a_plain_network() -> None:
    """Width 1.0 only equals FedAvg: torch's own layers and optimiser are the oracle."""
    network, data = build_network("small-cnn", SCHEMA), batch()
    initial, (x, y) = network.dump(), tensors()
    result = train_locally(network, initial, 1.0, data, plan(None, (0.05, 0.01)), rng_for(1), CPU)
    module = build_plain(network.plain(1.0), initial).train()
    rng = rng_for(1)
    momentum: dict[str, torch.Tensor] = {}
    for rate in (0.05, 0.01):
        order = rng.permutation(50)
        for start in range(0, 50, 16):
            rows = torch.from_numpy(order[start : start + 16])
            module.zero_grad()
            F.cross_entropy(module(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            for name, parameter in module.named_parameters():
                assert parameter.grad is not None
                momentum[name] = 0.9 * momentum.get(name, torch.zeros(())) + parameter.grad
                parameter.data -= rate * momentum[name]
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(result.params[name], parameter.detach().numpy(), atol=1e-5)


def test_clipping_bounds_a_step_and_a_large_bound_changes_nothing() -> None:
    network, data = build_network("small-cnn", SCHEMA), batch(16)
    initial = network.dump()

    def step(clip_norm: float) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
        one_step = LocalPlan((1.0,), 16, 0.0, None, clip_norm=clip_norm)
        trained = train_locally(network, initial, 1.0, data, one_step, rng_for(1), CPU).params
        return {key: trained[key] - initial[key] for key in trained}

    free, loose, tight = step(0.0), step(1e6), step(0.01)
    norms = [np.sqrt(sum((u**2).sum() for u in us.values())) for us in (free, tight)]
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(0.01, rel=1e-3)
    for key, update in free.items():
        np.testing.assert_array_equal(update, loose[key])
        np.testing.assert_allclose(tight[key], update * 0.01 / norms[0], rtol=1e-3, atol=1e-6)


def test_the_same_rng_gives_the_same_bits_and_another_gives_others() -> None:
    network, data = build_network("small-cnn", SCHEMA), batch()
    initial = network.dump()
    runs = [
        train_locally(network, initial, 1.0, data, plan(0.25), rng_for(seed), CPU)
        for seed in (1, 1, 2)
    ]
    assert all(np.array_equal(runs[0].params[k], runs[1].params[k]) for k in initial)
    assert not all(np.array_equal(runs[0].params[k], runs[2].params[k]) for k in initial)


def test_a_narrow_participant_trains_its_prefix_whatever_the_rest_holds() -> None:
    network, data = build_network("small-cnn", SCHEMA), batch()
    sub = network.dump(0.5)
    clean = train_locally(network, sub, 0.5, data, plan(0.25), rng_for(1), CPU)
    assert {k: v.shape for k, v in clean.params.items()} == {k: v.shape for k, v in sub.items()}
    network.load({k: np.full_like(v, 1e6) for k, v in network.dump().items()})
    dirty = train_locally(network, sub, 0.5, data, plan(0.25), rng_for(1), CPU)
    assert all(np.array_equal(clean.params[k], dirty.params[k]) for k in sub)


def test_distillation_teaches_the_narrow_pass_with_the_wide_softmax() -> None:
    network, (x, y) = build_network("small-cnn", SCHEMA), tensors()
    loss, wide = sandwich_loss(network, x, y, 1.0, 0.4, distillation=True)
    target = network(x, 1.0).detach().softmax(1)
    narrow = -(target * network(x, 0.4).log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(loss, wide + narrow)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in network.parameters())


def test_a_diverging_loss_is_an_error_with_advice() -> None:
    network = build_network("small-cnn", SCHEMA)
    with pytest.raises(TrainingError, match="lower the learning rate"):
        train_locally(
            network, network.dump(), 1.0, batch(), plan(0.25, (1e30, 1e30)), rng_for(1), CPU
        )


@pytest.mark.parametrize("name", [*BUILDERS])
def test_every_network_runs_in_mixed_precision(name: str) -> None:
    network, x = network_and_batch(name)
    y = torch.arange(len(x)) % 5
    with torch.no_grad():
        exact, _ = sandwich_loss(network, x, y, 1.0, 0.4)
        with choose_compute("cpu", "bfloat16").autocast():
            mixed, _ = sandwich_loss(network, x, y, 1.0, 0.4)
    assert float(mixed) == pytest.approx(float(exact), rel=0.05)


def test_mixed_precision_trains_and_returns_float32() -> None:
    network, data = build_network("small-cnn", SCHEMA), batch()
    compute = choose_compute("cpu", "bfloat16")
    result = train_locally(network, network.dump(), 1.0, data, plan(0.25), rng_for(1), compute)
    exact = train_locally(
        build_network("small-cnn", SCHEMA),
        build_network("small-cnn", SCHEMA).dump(),
        1.0,
        data,
        plan(0.25),
        rng_for(1),
        CPU,
    )
    assert all(value.dtype == np.float32 for value in result.params.values())
    assert result.loss == pytest.approx(exact.loss, rel=0.05)
    assert result.loss != exact.loss


@pytest.mark.parametrize(
    ("schedule", "rounds", "expected"),
    [
        ("paper", 50, [1.0, 1.0, 1.0, 1.0]),
        ("paper", 100, [1.0, 0.1, 0.01, 0.01]),
        ("step", 40, [1.0, 0.1, 0.01, 0.01]),
        ("constant", 100, [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_the_schedule_steps_at_half_and_three_quarters(
    schedule: str, rounds: int, expected: list[float]
) -> None:
    at = [rounds // 2, rounds // 2 + 1, rounds * 3 // 4 + 1, rounds]
    got = [scheduled_rate(1.0, schedule, server_round, rounds) for server_round in at]
    assert got == pytest.approx(expected)
