"""Settings written as ``kind`` or ``kind:number,number``, and which kinds there are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """A kind and its numbers."""

    kind: str
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Form:
    """How a kind is written, and which of its numbers are possible.

    ``says`` is the sentence for numbers that ``allows`` refuses.
    """

    text: str
    count: int = 0
    allows: Callable[..., bool] = lambda *_numbers: True
    says: str = ""


def _is_share(number: float) -> bool:
    return 0 < number <= 1


PARTITIONS: Mapping[str, Form] = {
    "homogeneous": Form("homogeneous"),
    "dirichlet": Form(
        "dirichlet:ALPHA, e.g. dirichlet:0.5",
        1,
        lambda alpha: 0 < alpha < float("inf"),
        "ALPHA must be a finite number above 0",
    ),
    "quantity-skew": Form(
        "quantity-skew:SHARE,HOLDERS, e.g. quantity-skew:0.15,6",
        2,
        lambda share, holders: (
            0 < share < 1 and holders >= 1 and holders % 1 == 0 and share * holders <= 1
        ),
        "SHARE must be in (0, 1), HOLDERS a whole number of at least 1, and SHARE x HOLDERS at "
        "most 1",
    ),
    "label-skew": Form(
        "label-skew:CLASSES, e.g. label-skew:3",
        1,
        lambda classes: 1 <= classes <= 10_000_000 and classes % 1 == 0,
        "CLASSES must be a whole number of at least 1",
    ),
    "natural": Form("natural"),
}
PARTICIPATIONS: Mapping[str, Form] = {
    "all": Form("all"),
    "rates": Form(
        "rates:LOW,HIGH, e.g. rates:0.5,1",
        2,
        lambda low, high: 0 <= low <= 1 and 0 < high <= 1,
        "LOW and HIGH must be rates from 0 to 1, HIGH above 0",
    ),
    "sample": Form(
        "sample:FRACTION, e.g. sample:0.2", 1, _is_share, "FRACTION must be above 0 and at most 1"
    ),
}
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


def read_spec(what: str, text: str, forms: Mapping[str, Form]) -> Spec:
    """Read ``kind:number,number``; raises ValueError that says what is allowed."""
    kind, _, tail = text.partition(":")
    if kind not in forms:
        allowed = "; ".join(form.text for form in forms.values())
        raise ValueError(f"unknown {what}; allowed are {allowed}")
    form = forms[kind]
    try:
        numbers = tuple(float(part) for part in tail.split(",")) if tail else ()
    except ValueError:
        raise ValueError(f"its numbers cannot be read; write {form.text}") from None
    if len(numbers) != form.count:
        raise ValueError(f"it takes {form.count} number(s); write {form.text}")
    if not form.allows(*numbers):
        raise ValueError(form.says)
    return Spec(kind, numbers)


def read_partition(text: str) -> Spec:
    """Read how the training data is split."""
    return read_spec("partition", text, PARTITIONS)


def read_participation(text: str) -> Spec:
    """Read who takes part in a round."""
    return read_spec("participation", text, PARTICIPATIONS)


def read_behaviours(text: str) -> tuple[Spec, ...]:
    """Read what participants do, one after the other, with commas between; nothing is none."""
    parts = text.split(",") if text.strip() else ()
    return tuple(read_spec("behaviour", part.strip(), BEHAVIOURS) for part in parts)
