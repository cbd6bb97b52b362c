"""A choice with options of its own, written as ``kind:option=value,option=value``."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.errors import UsageError

T = TypeVar("T")
# Pydantic speaks of parsing strings; users wrote a setting.
_REASONS = {
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of reasonable size",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a finite number",
}


@dataclass(frozen=True)
class Choice(Generic[T]):
    """The kinds that a ``setting`` can have: each a dataclass whose fields are its options.

    ``raises`` is the error for what cannot be read; its text names the setting.
    """

    setting: str
    kinds: Mapping[str, type[T]]
    raises: type[UsageError]

    def option_names(self, kind: str) -> tuple[str, ...]:
        """Return the options of a kind as they are written in a setting."""
        fields: Any = self.kinds[kind]
        return tuple(field.name.replace("_", "-") for field in dataclasses.fields(fields))

    def build(self, text: str) -> T:
        """Return the kind that ``text`` names, with the options that it gives."""
        kind, colon, tail = text.partition(":")
        if kind not in self.kinds:
            raise self.raises(
                f"{self.setting} = {text!r} is no method{_perhaps(kind, list(self.kinds))}; use "
                f"{either(list(self.kinds))}."
            )
        options = self._read_options(text, kind, tail.split(",")) if colon else {}
        try:
            return TypeAdapter(self.kinds[kind]).validate_python(options)
        except ValidationError as error:
            first = error.errors()[0]
            option = str(first["loc"][0])
            reason = first["msg"].replace("Input should be", "must be", 1)
            raise self.raises(
                f"{self.setting} = {text!r} has {option.replace('_', '-')}={options[option]}, "
                f"which {_REASONS.get(first['type'], reason)}."
            ) from None

    def _read_options(self, text: str, kind: str, parts: Sequence[str]) -> dict[str, str]:
        """Return the values, as text, by the names of the fields."""
        known = self.option_names(kind)
        if not known:
            raise self.raises(
                f"{self.setting} = {text!r} has options, but {kind} takes none; use {kind}."
            )
        options: dict[str, str] = {}
        for part in parts:
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals:
                raise self.raises(
                    f"{self.setting} = {text!r} has {part!r} where option=value is expected; "
                    f"options of {kind} are {', '.join(known)}."
                )
            if name not in known:
                raise self.raises(
                    f"{self.setting} = {text!r} has the unknown option {name!r}"
                    f"{_perhaps(name, known)}; options of {kind} are {', '.join(known)}."
                )
            field = name.replace("-", "_")
            if field in options:
                raise self.raises(f"{self.setting} = {text!r} has {name} twice; keep one of them.")
            options[field] = value
        return options


def _perhaps(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f", perhaps {near[0]} is meant" if near else ""


def either(words: Sequence[str]) -> str:
    """Return "a, b or c"."""
    return f"{', '.join(words[:-1])} or {words[-1]}"
