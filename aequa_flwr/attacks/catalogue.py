"""The attacks that `aequa audit` tries, by name; the most telling ones first."""

from collections.abc import Mapping

from aequa_flwr.attacks.alone import AddsOutsideData, ShowsReward, TrainsLonger
from aequa_flwr.attacks.attack import After, Attack, EveryOther
from aequa_flwr.attacks.rounds import (
    DecaysWeights,
    Distils,
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
from aequa_flwr.attacks.shares import Brings, Identities, Pools, Withholds
from aequa_flwr.errors import UsageError
from aequa_flwr.options import CannotImportError, Spec, either, import_named, in_short
from aequa_flwr.training import Behaviour

_IDLE = SendsBack()

ATTACKS: Mapping[str, Attack] = {
    # Who has nothing.
    "replay": Attack("no data: sends the federation's last step again", Replays(), _IDLE),
    "alone-then-zeros": Attack("honest alone, then sends back what it received", _IDLE),
    "alone-then-replay": Attack("honest alone, then replays the last step", Replays()),
    "replay-twice": Attack(
        "no data: replays twice as long, a little noise", Replays(2, 0.1), _IDLE
    ),
    "zeros": Attack("no data: sends back what it received", _IDLE, _IDLE),
    "alone-then-flipped": Attack("honest alone, then flipped labels", FlipsLabels()),
    "few-then-replay": Attack("10 examples, and a replay", Replays(), brings=Brings(10)),
    "longer": Attack("ten times the epochs alone", alone=TrainsLonger()),
    "outside-data": Attack("adds outside data to its model alone", alone=AddsOutsideData()),
    "triple": Attack("sends three times its update", Scales(3.0)),
    "narrowest": Attack("trains only the narrowest sub-network", TrainsNarrowest()),
    "repeats": Attack("10 examples, each 20 times", brings=Brings(10, 20)),
    "pool": Attack("three members pool their data", brings=Pools(), members=3),
    "identities": Attack("three identities with the same data", brings=Identities()),
    "alone-then-harm": Attack("honest alone, then -3 times its update", Scales(-3.0)),
    "poison-outside": Attack("poisons all but the narrowest sub-network", PoisonsOutside()),
    "last-reward": Attack("shows its last reward as its model alone", alone=ShowsReward()),
    "claims": Attack("claims 100 times its examples", claims=100.0),
    "noise": Attack("no data: noise as long as an honest update", NoiseAsLong(), _IDLE),
    "flipped": Attack("all labels flipped", FlipsLabels(), FlipsLabels()),
    "flipped-30": Attack("30 % of the labels flipped", FlipsLabels(0.3), FlipsLabels(0.3)),
    "withholds": Attack("withholds half of its data", brings=Withholds()),
    "withholds-rarest": Attack("withholds its rarest classes", brings=Withholds(rarest=True)),
    # Who knows how cheating is found.
    "every-other": Attack("idle in every second round", EveryOther(_IDLE)),
    "half-time": Attack("idle in the second half of the rounds", After(0.5, _IDLE)),
    "replay-half": Attack("honest alone, then replays half of the entries", Replays(share=0.5)),
    "decay": Attack("honest alone, then 2 % weight decay", DecaysWeights()),
    "distil": Attack("honest alone, then distils what it was sent on noise", Distils()),
    "same-noise": Attack(
        "honest alone, then the same noise in every round", NoiseAsLong(same=True)
    ),
    "towards-own": Attack("honest alone, then replays and a step to its own model", TowardsOwn()),
}


def find_attack(name: str) -> Attack:
    """Return the attack of that name, or a user-defined one, ``package.module:name``.

    A user-defined attack is an `Attack`, a function or class without arguments that returns one, or
    a behaviour, which then answers alone and in the rounds. Raises UsageError with the reason.
    """
    if name in ATTACKS:
        return ATTACKS[name]
    if ":" not in name:
        raise UsageError(
            f"attack = {name!r} is unknown; use {either(list(ATTACKS))}, or package.module:name."
        )
    try:
        found = import_named(name)
    except CannotImportError as error:
        raise UsageError(f"The attack {name} cannot be imported ({error}).") from error
    try:
        made = found() if callable(found) else found
    except Exception as error:  # the user's code
        raise UsageError(f"The attack {name} cannot be made: {in_short(error)}.") from error
    if isinstance(made, Attack):
        return made
    if hasattr(made, "answer"):
        return Attack(name, made, made)
    raise UsageError(
        f"The attack {name} is of type {type(made).__name__}; it must be an Attack, or have a "
        "method answer(task)."
    )


def attack_of(behaviour: Spec) -> Attack | None:
    """Return the attack of an entry of the setting ``behaviour``; None is honest."""
    kinds: Mapping[str, Behaviour] = {
        "zeros": _IDLE,
        "noise": Noise(*behaviour.numbers[:1] or (0.0,)),
        "flip": FlipsLabels(*behaviour.numbers[:1] or (0.0,)),
    }
    found = kinds.get(behaviour.kind)
    return None if found is None else Attack(behaviour.kind, found, found)
