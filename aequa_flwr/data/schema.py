"""Schema: what all sites of a federation must agree on before they train together."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Kind = Literal["images", "numbers", "tokens"]
# The first two token ids; the vocabulary holds the words of the others.
PADDING, UNKNOWN = 0, 1
DEFAULT_TASK = "classification"


@dataclass(frozen=True)
class Schema:
    """The form of an example, how it becomes a network's input, the classes, and the task.

    ``shape`` is that of one example. ``kind`` says how it is stored and becomes an input:

    - "images": uint8 (channels, height, width); the input is ``(x / 255 - mean) / std``.
    - "numbers": float32 of any shape; the input is ``(x - mean) / std``.
    - "tokens": int32 ids (length,). Word k of ``vocabulary`` has the id k + 2. 1 stands for every
      other word, and 0 pads the end.

    ``mean`` and ``std`` have one entry for each entry of the first axis, or none for 0 and 1.
    ``classes`` are those of the federation; a site may hold only some of them. ``task`` is a name
    in `TASKS`.
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
        """A short checksum, equal for equal schemas; nodes compare it when they join."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values; the default task is left out."""
        content = asdict(self)
        if self.task == DEFAULT_TASK:  # so that a schema of version 0.1 has the same fingerprint
            del content["task"]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the schema that ``to_json`` wrote.

        Raises ValueError, TypeError or KeyError for anything else.
        """
        if content["kind"] not in ("images", "numbers", "tokens"):
            raise ValueError(f"unknown kind {content['kind']!r}")
        words = ("kind", "task")
        lists: dict[str, Any] = {key: tuple(content[key]) for key in content if key not in words}
        return cls(kind=content["kind"], task=str(content.get("task", DEFAULT_TASK)), **lists)
