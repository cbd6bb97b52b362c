"""How a choice is written: ``kind:number``, ``kind:option=value``, or ``package.module:name``."""

import dataclasses
import difflib
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.errors import UsageError

T = TypeVar("T")
# Environment variable: the folder where `aequa` was started. User-defined code in it (a network, a
# tracker) is found without being installed.
IMPORT_PATH = "AEQUA_IMPORT_PATH"
# Pydantic's own messages are about parsing strings; the user wrote a setting.
_REASONS = {
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of reasonable size",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a finite number",
}


@dataclass(frozen=True)
class Spec:
    """A parsed choice: a kind and its numbers."""

    kind: str
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Form:
    """How a kind is written, and which numbers it accepts.

    ``says`` is the error for numbers that ``allows`` rejects.
    """

    text: str
    count: int = 0
    allows: Callable[..., bool] = lambda *_numbers: True
    says: str = ""


def read_spec(what: str, text: str, forms: Mapping[str, Form]) -> Spec:
    """Parse ``kind:number,number``. Raises ValueError, which says what is allowed."""
    kind, _, tail = text.partition(":")
    if kind not in forms:
        allowed = "; ".join(form.text for form in forms.values())
        raise ValueError(f"unknown {what}; allowed values are {allowed}")
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


def kind_of(text: str) -> str:
    """Return the kind of a choice, without its numbers or options."""
    return text.partition(":")[0]


@dataclass(frozen=True)
class Choice(Generic[T]):
    """The kinds that a ``setting`` can name: each is a dataclass whose fields are its options.

    ``raises`` is the exception for invalid text; its message names the setting.
    """

    setting: str
    kinds: Mapping[str, type[T]]
    raises: type[UsageError]

    def option_names(self, kind: str) -> tuple[str, ...]:
        """Return the options of a kind as they are written in a setting."""
        fields: Any = self.kinds[kind]
        return tuple(field.name.replace("_", "-") for field in dataclasses.fields(fields))

    def build(self, text: str) -> T:
        """Return the kind that ``text`` names, built with the options in ``text``."""
        kind, colon, tail = text.partition(":")
        if kind not in self.kinds:
            raise self.raises(
                f"{self.setting} = {text!r} is unknown{_perhaps(kind, list(self.kinds))}; use "
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
        """Return the values of the options as text, by field name."""
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
    return f" (did you mean {near[0]}?)" if near else ""


def either(words: Sequence[str]) -> str:
    """Return "a, b or c"."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


class CannotImportError(Exception):
    """An import that failed; its text is the reason, short enough for a sentence."""


def import_named(name: str) -> object:
    """Import ``package.module:name`` and return the object. Raises CannotImportError.

    The package may be installed, or be in the folder where `aequa` was started.
    """
    module, _, attribute = name.partition(":")
    folder = os.environ.get(IMPORT_PATH, "")
    if folder and folder not in sys.path:
        sys.path.append(folder)  # last, so that nothing there hides an installed package
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    # An import runs the user's code, which can raise anything, even SystemExit.
    except (Exception, SystemExit) as error:
        raise CannotImportError(in_short(error)) from error
    return found


def in_short(error: BaseException) -> str:
    """Return an exception of user-defined code as one line of at most 300 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
