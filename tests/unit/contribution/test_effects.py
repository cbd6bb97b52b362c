"""Which part of an update is a participant's own; the answers of a linear model are the oracle."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from aequa_flwr.contribution import Floats, Probe
from aequa_flwr.contribution.effects import effects_of
from aequa_flwr.slim import Axis, Layouts, Params, extract

LAYOUTS: Layouts = {"weight": (Axis(8), 4), "out": (3, Axis(8))}
RNG = np.random.default_rng(1)
INPUTS = RNG.normal(size=(6, 4))


def params(scale: float = 1.0) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {
        "weight": (scale * RNG.normal(size=(8, 4))).astype(np.float32),
        "out": (scale * RNG.normal(size=(3, 8))).astype(np.float32),
    }


def answers(given: Params, width: float) -> Floats:
    assert given["weight"].shape[0] == round(8 * width)
    answered: Floats = INPUTS @ given["weight"].T.astype(float) @ given["out"].T.astype(float)
    return answered


PROBE = Probe(answers, np.zeros(6, np.int64))
MODEL, EARLIER = params(), [params(), params(), params()]


def moved(step: Mapping[str, Floats], width: float = 1.0, model: Params = MODEL) -> Params:
    start = extract(model, LAYOUTS, width)
    inside = {name: step[name][tuple(map(slice, value.shape))] for name, value in start.items()}
    return {k: (v + inside[k]).astype(np.float32) for k, v in start.items()}


def steps() -> list[dict[str, Floats]]:
    chain: list[Params] = [MODEL, *EARLIER]
    return [{k: new[k].astype(float) - old[k] for k in new} for new, old in pairwise(chain)]


@pytest.mark.parametrize("width", [0.5, 1.0])
@pytest.mark.parametrize("times", [-1.0, 0.5, 2.0])
def test_nothing_is_left_of_replays_and_of_weight_decay(width: float, times: float) -> None:
    weights: dict[str, Floats] = {k: v.astype(float) for k, v in MODEL.items()}
    known = [*steps(), weights]
    mixed: dict[str, Floats] = {k: np.sum([one[k] for one in known], axis=0) for k in MODEL}
    mixtures: list[dict[str, Floats]] = [*known, mixed]
    for step in mixtures:
        scaled = {k: times * v for k, v in step.items()}
        effects = effects_of(PROBE, LAYOUTS, [(MODEL, moved(scaled, width), width)], EARLIER)
        assert np.abs(effects.change).max() > 0.1
        assert np.abs(effects.innovation).max() < 1e-4


def test_an_update_that_is_new_stays_whole() -> None:
    step = {k: v.astype(float) for k, v in params(0.1).items()}
    weights: dict[str, Floats] = {k: v.astype(float) for k, v in MODEL.items()}
    known = np.stack(
        [np.concatenate([one[k].ravel() for k in MODEL]) for one in [*steps(), weights]], axis=1
    )
    flat = np.concatenate([step[k].ravel() for k in MODEL])
    flat = flat - known @ np.linalg.lstsq(known, flat, rcond=None)[0]
    new = {"weight": flat[:32].reshape(8, 4), "out": flat[32:].reshape(3, 8)}
    effects = effects_of(PROBE, LAYOUTS, [(MODEL, moved(new), 1.0)], EARLIER)
    np.testing.assert_allclose(effects.innovation, effects.change, atol=1e-5)
    change = answers(moved(new), 1.0) - answers(MODEL, 1.0)
    np.testing.assert_allclose(effects.change[0], change)


def test_in_the_first_round_there_is_nothing_to_repeat() -> None:
    step = steps()[0]
    effects = effects_of(PROBE, LAYOUTS, [(MODEL, moved(step), 1.0)], [])
    assert np.abs(effects.innovation).max() > 0.1


def test_an_update_of_zeros_has_no_effect() -> None:
    effects = effects_of(PROBE, LAYOUTS, [(MODEL, MODEL, 1.0)], EARLIER)
    assert not effects.change.any()
    assert not effects.innovation.any()


def test_participants_of_several_widths_stand_in_their_order() -> None:
    step = {k: v.astype(float) for k, v in params(0.1).items()}
    trained = [(MODEL, moved(step, width), width) for width in (1.0, 0.5, 1.0)]
    effects = effects_of(PROBE, LAYOUTS, trained, EARLIER)
    assert effects.before.shape == (3, 6, 3)
    np.testing.assert_array_equal(effects.before[0], effects.before[2])
    np.testing.assert_array_equal(effects.change[0], effects.change[2])
    np.testing.assert_allclose(effects.before[1], answers(extract(MODEL, LAYOUTS, 0.5), 0.5))
