"""The setting ``behaviour``: faults of simulated participants in an experiment."""

from collections.abc import Mapping

from aequa_flwr.options import Form, Spec, read_spec

BEHAVIOURS: Mapping[str, Form] = {
    "honest": Form("honest"),
    "flip": Form(
        "flip:FRACTION, e.g. flip:0.3",
        1,
        lambda fraction: 0 <= fraction <= 1,
        "FRACTION must be from 0 to 1",
    ),
    "zeros": Form("zeros"),
    "noise": Form(
        "noise:DEVIATION, e.g. noise:0.01",
        1,
        lambda deviation: 0 < deviation <= 1e6,
        "DEVIATION must be a number above 0",
    ),
}


def read_behaviours(text: str) -> tuple[Spec, ...]:
    """Parse the behaviours of the first participants, separated by commas; empty: none."""
    parts = text.split(",") if text.strip() else ()
    return tuple(read_spec("behaviour", part.strip(), BEHAVIOURS) for part in parts)
