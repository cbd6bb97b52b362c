"""Attacks of simulated participants: what cheating looks like, as small classes to combine."""

from aequa_flwr.attacks.alone import AddsOutsideData, ShowsReward, TrainsLonger
from aequa_flwr.attacks.attack import After, Attack, EveryOther, Regroups
from aequa_flwr.attacks.catalogue import ATTACKS, attack_of, find_attack
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

__all__ = [
    "ATTACKS",
    "AddsOutsideData",
    "After",
    "Attack",
    "Brings",
    "DecaysWeights",
    "Distils",
    "EveryOther",
    "FlipsLabels",
    "Identities",
    "Noise",
    "NoiseAsLong",
    "PoisonsOutside",
    "Pools",
    "Regroups",
    "Replays",
    "Scales",
    "SendsBack",
    "ShowsReward",
    "TowardsOwn",
    "TrainsLonger",
    "TrainsNarrowest",
    "Withholds",
    "attack_of",
    "find_attack",
]
