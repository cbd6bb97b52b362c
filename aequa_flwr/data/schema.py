"""Schema: what all sites of a federation must agree on before they train together."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Kind = Literal["images", "numbers", "tokens"]
# The first two ids of a text's tokens; the vocabulary holds the words of the others.
PADDING, UNKNOWN = 0, 1
DEFAULT_TASK = "classification"


@dataclass(frozen=True)
class Schema:
    """The form of an example, how it becomes a network's input, and the classes.

    ``shape`` is that of one example. "images" are uint8 (channels, height, width), and an input
    is ``(x / 255 - mean) / std``; "numbers" are float32 of any shape, ``(x - mean) / std``;
    ``mean`` and ``std`` have one entry for each entry of the first axis, or none for 0 and 1.
    "tokens" are int32 ids (length,), 0 after the end: word k of ``vocabulary`` is id k + 2, and
    1 is every other word. ``classes`` are the federation's: a site may hold only some of them.
    ``task`` is a name of `TASKS`: what is learnt from the examples.
    """

    kind: Kind
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    vocabulary: tuple[str, ...] = ()
    task: str = DEFAULT_TASK

    @classmethod
    def numbered(cls, kind: Kind, shape: tuple[int, ...], num_classes: int) -> Self:
        """Return a schema without normalisation whose classes are called 0, 1, 2, ..."""
        return cls(kind, shape, tuple(str(label) for label in range(num_classes)))

    @classmethod
    def texts(cls, length: int, num_words: int, num_classes: int) -> Self:
        """Return a schema of texts whose words and classes are called 0, 1, 2, ..."""
        schema = cls.numbered("tokens", (length,), num_classes)
        return replace(schema, vocabulary=tuple(str(word) for word in range(num_words)))

    @property
    def num_classes(self) -> int:
        """How many classes the federation has."""
        return len(self.classes)

    @property
    def num_tokens(self) -> int:
        """How many ids a token can have, the two special ones included."""
        return len(self.vocabulary) + 2

    @property
    def fingerprint(self) -> str:
        """Equal for equal schemas; what nodes compare when they join."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, without a task that goes without saying."""
        content = asdict(self)
        if self.task == DEFAULT_TASK:  # so that a schema of version 0.1 has the same fingerprint
            del content["task"]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read it back; raises ValueError, TypeError or KeyError for anything else."""
        if content["kind"] not in ("images", "numbers", "tokens"):
            raise ValueError(f"unknown kind {content['kind']!r}")
        words = ("kind", "task")
        lists: dict[str, Any] = {key: tuple(content[key]) for key in content if key not in words}
        return cls(kind=content["kind"], task=str(content.get("task", DEFAULT_TASK)), **lists)
