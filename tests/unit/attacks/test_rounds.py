"""What each behaviour sends, against what honest training would send."""

from dataclasses import replace

import numpy as np
import pytest

from aequa_flwr.attacks import (
    ATTACKS,
    After,
    Attack,
    DecaysWeights,
    Distils,
    EveryOther,
    FlipsLabels,
    Noise,
    NoiseAsLong,
    PoisonsOutside,
    Replays,
    Scales,
    SendsBack,
    TowardsOwn,
    TrainsNarrowest,
)
from aequa_flwr.attacks.rounds import length
from aequa_flwr.data import Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Params, embed, extract
from aequa_flwr.slim.networks import (
    Builder,
    Channelwise,
    SlimBatchNorm2d,
    SlimConv2d,
    SlimLinear,
    SlimNetwork,
    build_network,
)
from aequa_flwr.training import Behaviour, LocalPlan, LocalTask, Memory
from tests.unit.training.batches import CPU, SCHEMA, batch

NETWORK = build_network("small-cnn", SCHEMA, init_seed=1)
FULL = NETWORK.dump()


def a_task(
    received: Params = FULL,
    width: float = 1.0,
    *,
    server_round: int = 3,
    network: SlimNetwork = NETWORK,
    memory: Memory | None = None,
) -> LocalTask:
    # A random generator of its own for each task, so that two of them train alike.
    return LocalTask(
        "cheat", server_round, received, width, LocalPlan((0.05,), 16, 0.9, 0.25), batch(),
        rng_for(1, server_round), network, CPU, seed=1, num_rounds=10, num_classes=10,
        memory=memory or Memory(), outside=lambda: batch(20),
    )  # fmt: skip


def honest(**changes: float) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return a_task(**changes).train().params  # type: ignore[arg-type]


def update(behaviour: Behaviour, task: LocalTask) -> Params:
    sent = behaviour.answer(task).params
    return {name: sent[name] - value for name, value in task.received.items()}


def shifted(amount: float) -> Params:
    """The model as it was before a step by ``amount`` on every value."""
    return {name: value - np.float32(amount) for name, value in FULL.items()}


def same(one: Params, other: Params, *, atol: float = 1e-6) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], atol=atol)


def test_an_attack_without_parts_is_honest() -> None:
    attack = Attack("nothing")
    for server_round in (0, 3):
        sent = attack.answer(a_task(server_round=server_round)).params
        for name, value in a_task(server_round=server_round).train().params.items():
            np.testing.assert_array_equal(sent[name], value)
    assert attack.claimed(7) == 7


def test_an_idle_participant_sends_copies_of_what_it_received() -> None:
    task = a_task()
    sent = SendsBack().answer(task).params
    for name, value in task.received.items():
        np.testing.assert_array_equal(sent[name], value)
        assert not np.shares_memory(sent[name], value)


def test_noise_has_the_deviation_that_was_asked_for() -> None:
    noise = np.concatenate([value.ravel() for value in update(Noise(0.1), a_task()).values()])
    assert noise.std() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("times", [1.0, 2.0, -1.0])
def test_a_replay_is_the_last_step_of_what_was_received(times: float) -> None:
    task = a_task(memory=Memory(received=shifted(0.01)))
    for value in update(Replays(times), task).values():
        np.testing.assert_allclose(value, 0.01 * times, atol=1e-6)


def test_there_is_nothing_to_replay_in_the_first_round() -> None:
    for behaviour in (Replays(), Replays(2.0, 0.1), NoiseAsLong()):
        assert length(update(behaviour, a_task(server_round=1))) == 0.0


@pytest.mark.parametrize(("before", "now"), [(0.5, 1.0), (1.0, 0.5)])
def test_a_replay_covers_what_was_received_in_both_rounds(before: float, now: float) -> None:
    layouts, narrow = NETWORK.layouts, min(before, now)
    memory = Memory(received=extract(shifted(0.01), layouts, before))
    task = a_task(extract(FULL, layouts, now), now, memory=memory)
    replayed = update(Replays(), task)
    total = sum(float(value.sum()) for value in replayed.values())
    assert total == pytest.approx(0.01 * sum(extract(FULL, layouts, narrow)[n].size for n in FULL))
    for value in extract(replayed, layouts, narrow).values():
        np.testing.assert_allclose(value, 0.01, atol=1e-6)


def test_half_of_the_entries_are_the_same_ones_in_every_round() -> None:
    memory = Memory(received=shifted(0.01))
    first, second = (
        update(Replays(share=0.5), a_task(server_round=number, memory=memory)) for number in (2, 3)
    )
    same(first, second)
    moved = np.concatenate([value.ravel() != 0 for value in first.values()])
    assert moved.mean() == pytest.approx(0.5, abs=0.05)


def test_noise_is_as_long_as_the_last_step_and_may_repeat() -> None:
    memory = Memory(received=shifted(0.01))
    last = length({name: np.full_like(value, 0.01) for name, value in FULL.items()})
    tasks = [a_task(server_round=number, memory=memory) for number in (2, 3)]
    fresh = [update(NoiseAsLong(), task) for task in tasks]
    assert [length(one) for one in fresh] == pytest.approx([last, last], rel=1e-4)
    assert length({n: fresh[0][n] - fresh[1][n] for n in FULL}) > last
    same(*(update(NoiseAsLong(same=True), task) for task in tasks))


@pytest.mark.parametrize("factor", [1.0, 3.0, -3.0])
def test_a_scaled_update_is_that_many_times_the_honest_one(factor: float) -> None:
    trained = honest()
    expected = {name: factor * (trained[name] - value) for name, value in FULL.items()}
    same(update(Scales(factor), a_task()), expected, atol=1e-5)


def test_only_the_narrowest_sub_network_is_trained() -> None:
    layouts = NETWORK.layouts
    sent = TrainsNarrowest().answer(a_task()).params
    inner = a_task(extract(FULL, layouts, 0.25), 0.25).train().params
    same(extract(sent, layouts, 0.25), inner)
    same(embed(extract(FULL, layouts, 0.25), layouts, 0.25, sent), FULL)


def test_poison_is_outside_the_narrowest_sub_network_only() -> None:
    layouts, trained = NETWORK.layouts, honest()
    sent = PoisonsOutside(-3.0).answer(a_task()).params
    same(extract(sent, layouts, 0.25), extract(trained, layouts, 0.25))
    harm = {name: value - 3 * (trained[name] - value) for name, value in FULL.items()}
    same(
        embed(extract(FULL, layouts, 0.25), layouts, 0.25, sent),
        embed(extract(FULL, layouts, 0.25), layouts, 0.25, harm),
        atol=1e-5,
    )


def test_the_same_labels_are_flipped_in_every_round() -> None:
    memory = Memory()
    FlipsLabels(0.3).answer(a_task(server_round=1, memory=memory))
    first = memory.notes["flipped"]
    assert int((first.labels != batch().labels).sum()) == 15
    FlipsLabels(0.3).answer(a_task(server_round=2, memory=memory))
    assert memory.notes["flipped"] is first


def test_weight_decay_shrinks_every_value() -> None:
    same(update(DecaysWeights(0.02), a_task()), {n: -0.02 * v for n, v in FULL.items()})


def test_a_step_to_its_own_model_is_added_to_the_replay() -> None:
    memory = Memory(received=shifted(0.01), alone={n: v + np.float32(1.0) for n, v in FULL.items()})
    for value in update(TowardsOwn(0.05), a_task(memory=memory)).values():
        np.testing.assert_allclose(value, 0.01 + 0.05, atol=1e-5)


def test_distilling_on_noise_trains_without_the_data() -> None:
    memory = Memory()
    with_data = Distils().answer(a_task(memory=memory)).params
    assert length({n: v - FULL[n] for n, v in with_data.items()}) > 0.0
    others = replace(batch(), y=(batch().y + 1) % 10)
    without = Distils().answer(a_task().changed(data=others)).params
    same(with_data, without)  # its labels do not matter


def test_behaviours_that_change_over_time() -> None:
    idle = SendsBack()
    for cheating, rounds in (
        (EveryOther(idle), {2, 4, 6, 8, 10}),
        (After(0.5, idle), {6, 7, 8, 9, 10}),
    ):
        for number in range(1, 11):
            step = length(update(cheating, a_task(server_round=number)))
            assert (step == 0.0) == (number in rounds)


def with_batch_norm(_schema: Schema) -> SlimNetwork:
    return SlimNetwork(
        {
            "conv": SlimConv2d(1, 12, 3, slim_in=False),
            "bn": SlimBatchNorm2d(12),
            "relu": Channelwise("ReLU"),
            "pool": Channelwise("AdaptiveAvgPool2d", output_size=3),
            "flatten": Channelwise("Flatten"),
            "fc": SlimLinear(12, 10, in_block=9, slim_out=False),
        }
    )


@pytest.mark.parametrize("builder", ["small-cnn", with_batch_norm])
def test_every_attack_sends_finite_numbers_of_the_right_shapes(builder: str | Builder) -> None:
    built = build_network(builder, SCHEMA, init_seed=1)
    for attack in {(one.rounds, one.alone): one for one in ATTACKS.values()}.values():
        memory, full = Memory(), built.dump()
        for server_round, width in ((0, 1.0), (1, 1.0), (2, 0.5), (3, 1.0)):
            received = extract(full, built.layouts, width)
            task = a_task(received, width, server_round=server_round, network=built, memory=memory)
            result = attack.answer(task)
            memory.received = received
            for key, value in received.items():
                sent = result.params[key]
                assert sent.shape == value.shape
                assert sent.dtype == np.float32
                assert np.isfinite(sent).all()
                assert "var" not in key or sent.min() >= 0.0
            full = {key: value + np.float32(1e-3) for key, value in full.items()}
