"""Contribution methods by name, and their options as text: ``kind:option=value,option=value``."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.contribution.cgsv import Cgsv
from aequa_flwr.contribution.comfedsv import ComFedSV
from aequa_flwr.contribution.data_size import DataSize
from aequa_flwr.contribution.estimator import ContributionError, ContributionEstimator
from aequa_flwr.contribution.fedfaim import FedFaim
from aequa_flwr.contribution.fedsv import FedSV
from aequa_flwr.contribution.gtg_shapley import GtgShapley
from aequa_flwr.contribution.participation import Participation
from aequa_flwr.contribution.shapfed import ShapFed
from aequa_flwr.contribution.standalone import Standalone

METHODS: Mapping[str, type[ContributionEstimator]] = {
    "standalone": Standalone,
    "cgsv": Cgsv,
    "shapfed": ShapFed,
    "participation": Participation,
    "data-size": DataSize,
    "fedsv": FedSV,
    "gtg-shapley": GtgShapley,
    "comfedsv": ComFedSV,
    "fedfaim": FedFaim,
}
# Pydantic speaks of parsing strings; users wrote a setting.
_REASONS = {
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of reasonable size",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a finite number",
}


def option_names(kind: str) -> tuple[str, ...]:
    """Return the options of a method as they are written in a setting."""
    # What a Protocol does not say, every method is: a dataclass of its options.
    fields: Any = METHODS[kind]
    return tuple(field.name.replace("_", "-") for field in dataclasses.fields(fields))


def build_estimator(text: str) -> ContributionEstimator:
    """Return the method that a setting names; raises ContributionError that says what is wrong."""
    kind, colon, tail = text.partition(":")
    if kind not in METHODS:
        raise ContributionError(
            f"contribution = {text!r} is no method{_perhaps(kind, list(METHODS))}; use "
            f"{_either(list(METHODS))}."
        )
    options = _read_options(text, kind, tail.split(",")) if colon else {}
    try:
        return TypeAdapter(METHODS[kind]).validate_python(options)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0])
        reason = _REASONS.get(first["type"], first["msg"].replace("Input should be", "must be", 1))
        raise ContributionError(
            f"contribution = {text!r} has {option.replace('_', '-')}={options[option]}, which "
            f"{reason}."
        ) from None


def check_needs(
    kind_text: str, estimator: ContributionEstimator, *, validation: bool, participants: int
) -> None:
    """Raise ContributionError if the federation lacks what the estimator cannot do without.

    ``kind_text`` is the setting, for the error; ``validation`` is whether the server has data.
    """
    needs = estimator.needs
    if needs.validation and not validation:
        without = [kind for kind in METHODS if not build_estimator(kind).needs.validation]
        raise ContributionError(
            f"contribution = {kind_text!r} measures models on the server's data, and validation = "
            f"false; use {_either(without)}."
        )
    if participants < needs.participants:
        fewest = {2: "two"}.get(needs.participants, str(needs.participants))
        there = f"there is {participants}" if participants == 1 else f"there are {participants}"
        raise ContributionError(
            f"contribution = {kind_text!r} compares participants with each other and needs at "
            f"least {fewest}; {there}."
        )


def _read_options(text: str, kind: str, parts: Sequence[str]) -> dict[str, str]:
    """Return the values, as text, by the names of the fields."""
    known = option_names(kind)
    if not known:
        raise ContributionError(
            f"contribution = {text!r} has options, but {kind} takes none; use {kind}."
        )
    options: dict[str, str] = {}
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ContributionError(
                f"contribution = {text!r} has {part!r} where option=value is expected; options "
                f"of {kind} are {', '.join(known)}."
            )
        if name not in known:
            raise ContributionError(
                f"contribution = {text!r} has the unknown option {name!r}"
                f"{_perhaps(name, known)}; options of {kind} are {', '.join(known)}."
            )
        field = name.replace("-", "_")
        if field in options:
            raise ContributionError(f"contribution = {text!r} has {name} twice; keep one of them.")
        options[field] = value
    return options


def _perhaps(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f", perhaps {near[0]} is meant" if near else ""


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
