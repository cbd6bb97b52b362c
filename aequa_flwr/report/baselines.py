"""What the methods that Aequa is compared with are called, and what they do."""

from aequa_flwr.config import method_kind
from aequa_flwr.record import RunRecord

_BASELINES = {
    "fedavg-ft": (
        "FedAvg-FT",
        "A baseline: everybody trained one model together, and at the end once more alone.",
    ),
    "cgsv": (
        "CGSV",
        "A baseline: everybody has a model of its own; the larger the contribution, the larger a "
        "part of all updates it receives.",
    ),
    "iafl": (
        "IAFL",
        "A baseline: everybody has a model of its own; the larger the contribution, the more of "
        "the others' updates it receives.",
    ),
    "standalone": ("Standalone", "A baseline: everybody trained alone, and nothing was shared."),
}


def method_name(record: RunRecord) -> str:
    """Return the name of the method as people write it."""
    return _BASELINES[_kind(record)][0] if is_baseline(record) else "Aequa"


def about_baseline(record: RunRecord) -> str:
    """Return what a baseline does, in one sentence."""
    return _BASELINES[_kind(record)][1]


def is_baseline(record: RunRecord) -> bool:
    """Return whether everybody ends with a full model of its own, so that widths say nothing."""
    return _kind(record) in _BASELINES


def _kind(record: RunRecord) -> str:
    # Records of version 1 know no other method.
    return method_kind(str(record.config.get("method", "aequa")))
