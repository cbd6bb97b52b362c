"""From texts to token ids: how a text is split into words, and how words are numbered."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError
from aequa_flwr.data.schema import UNKNOWN, Schema

Tokens = npt.NDArray[np.int32]


def words(text: str) -> list[str]:
    """Split ``text`` at white space; words keep their case and punctuation."""
    return text.split()


def make_vocabulary(texts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return every word of ``texts``, the most frequent first, ties in alphabetical order."""
    counts = Counter(word for text in texts for word in text)
    return tuple(sorted(counts, key=lambda word: (-counts[word], word)))


# There are few schemas, but a service may look up the same word list for every text.
@lru_cache(maxsize=4)
def word_ids(vocabulary: tuple[str, ...]) -> Mapping[str, int]:
    """Return the id of every word: 2, 3, ... (0 is padding, 1 any other word)."""
    return {word: UNKNOWN + 1 + k for k, word in enumerate(vocabulary)}


def encode_words(texts: Sequence[Sequence[str]], ids: Mapping[str, int], length: int) -> Tokens:
    """Return ids (texts, length); short texts are padded with 0, long ones lose their end."""
    encoded = np.zeros((len(texts), length), dtype=np.int32)
    for row, text in zip(encoded, texts, strict=True):
        kept = [ids.get(word, UNKNOWN) for word in text[:length]]
        row[: len(kept)] = kept
    return encoded


def encode_text(text: str, schema: Schema, max_length: int | None = None) -> Tokens:
    """Return the ids (max_length,) of one text, as the federation's data was encoded.

    ``max_length`` is the schema's by default. Raises DataError for a text without words, which no
    network can read.
    """
    found = words(text)
    if not found:
        raise DataError("The text has no words; give one with at least one word.")
    length = schema.shape[0] if max_length is None else max_length
    encoded: Tokens = encode_words([found], word_ids(schema.vocabulary), length)[0]
    return encoded
