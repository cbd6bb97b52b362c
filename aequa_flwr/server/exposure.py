"""What each participant could have kept: the best model that it was ever sent.

Without trusted hardware, a participant keeps every model that it trains. So a split is fair only if
the best model that each was sent is (docs/without-trusted-hardware.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from aequa_flwr.results import Measured
from aequa_flwr.server.state import Kept, RunState
from aequa_flwr.slim import Params

# Personal models are measured one by one, so only so many are in a round: at most this share of the
# examples that the participants train on, each of which costs about three measured ones.
_SHARE = 0.3
# Fewer examples than this would say too little about a model.
_LEAST_EXAMPLES = 500


def best_of(one: Measured | None, other: Measured) -> Measured:
    """Return the one that is more accurate on the validation data; the first of equals."""
    return other if one is None or other.validation > one.validation else one


def expose(state: RunState, widths: Mapping[str, float]) -> RunState:
    """Return the state after ``params`` were sent to participants at these ``widths``.

    A participant can cut every narrower network out of what it holds, so the best of them counts.
    """
    exposed = dict(state.exposed)
    inside: dict[float, Measured] = {}
    best: Measured | None = None
    for width in sorted(state.known):
        best = inside[width] = best_of(best, state.known[width])
    for name, width in widths.items():
        exposed[name] = best_of(exposed.get(name), inside[width])
    return replace(state, exposed=dict(sorted(exposed.items())))


def expose_personal(
    state: RunState,
    asked: Mapping[str, float],
    measure: Callable[[Params, Sequence[float]], list[Measured]],
) -> RunState:
    """Return the state after everybody in ``asked`` was sent its personal model.

    If there are too many to measure them all, they take turns: each is measured every so many
    rounds, and its best model among those counts.
    """
    budget = _SHARE * sum(state.num_examples.values())
    turns = max(1, round(len(asked) * _LEAST_EXAMPLES / budget))
    exposed = dict(state.exposed)
    for index, name in enumerate(sorted(asked)):
        if (index + state.server_round) % turns == 0:
            accuracy = measure(state.models.of(name), (1.0,))[0]
            exposed[name] = best_of(exposed.get(name), accuracy)
    return replace(state, exposed=dict(sorted(exposed.items())))


def keep(state: RunState, levels: Mapping[str, int], ladder: Sequence[float]) -> RunState:
    """Return the state after participants were entitled to these ``levels`` of ``params``.

    Only the models that somebody would end with are kept as snapshots.
    """
    kept = dict(state.kept)
    for name, level in levels.items():
        now = Kept(state.server_round, level, state.known[ladder[level]])
        if name not in kept or now.accuracy.validation > kept[name].accuracy.validation:
            kept[name] = now
    snapshots = {**state.snapshots, state.server_round: state.params}
    needed = sorted({one.server_round for one in kept.values()})
    return replace(
        state,
        kept=dict(sorted(kept.items())),
        snapshots={server_round: snapshots[server_round] for server_round in needed},
    )


def measured_again(
    state: RunState,
    measure: Callable[[Params, Sequence[float]], list[Measured]],
    ladder: Sequence[float],
) -> RunState:
    """Return the state with the kept models measured on all data instead of a sample.

    What a participant was exposed to beyond them stays the difference on the sample, where both
    were measured.
    """
    kept, exposed = dict(state.kept), dict(state.exposed)
    fresh: dict[tuple[int, int], Measured] = {}
    for name, one in state.kept.items():
        model = (one.server_round, one.level)
        if model not in fresh:
            (fresh[model],) = measure(state.snapshots[one.server_round], (ladder[one.level],))
        kept[name] = replace(one, accuracy=fresh[model])
        if name in exposed:
            beyond = exposed[name].validation - one.accuracy.validation
            exposed[name] = replace(fresh[model], validation=fresh[model].validation + beyond)
    return replace(state, kept=kept, exposed=exposed)


def with_exposed_rewards(state: RunState) -> RunState:
    """Return the state at the end of a run, when everybody is sent its reward.

    A participant that was entitled to a better model in an earlier round is rewarded with that one:
    it has it anyway.
    """
    if not state.curve:
        return state
    levels, personal, rewards = dict(state.levels), dict(state.personal), dict(state.rewards)
    exposed = dict(state.exposed)
    for name, level in state.levels.items():
        final = rewards.get(name, state.curve[level])
        earlier = state.kept.get(name)
        if earlier is not None and earlier.accuracy.validation > final.validation:
            levels[name], final = earlier.level, earlier.accuracy
            rewards[name], personal[name] = final, state.snapshots[earlier.server_round]
        exposed[name] = best_of(exposed.get(name), final)
    return replace(
        state,
        levels=levels,
        personal=personal,
        rewards=rewards,
        exposed=dict(sorted(exposed.items())),
        kept={},
        snapshots={},
    )
