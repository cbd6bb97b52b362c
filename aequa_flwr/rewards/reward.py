"""A reward on disk: a physically small network with its card."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from aequa_flwr.data import Schema
from aequa_flwr.errors import UserError
from aequa_flwr.files import SAFE_CHARACTERS, is_safe_name, write_whole
from aequa_flwr.slim import Params
from aequa_flwr.slim.networks import PlainLayer, build_plain

if TYPE_CHECKING:
    from torch import nn

_CARD, _TENSORS = "card.json", "model.safetensors"
_CARD_VERSION = 4
# Bounds the memory that reading a card can take; the longest vocabulary (data.schema_file) fits.
_MAX_CARD_BYTES = 100_000_000


class RewardError(UserError):
    """A reward that cannot be written or read."""


@dataclass(frozen=True)
class RewardCard:
    """What the holder of a reward may know: its own model, and nothing about other participants.

    ``accuracy`` is the balanced accuracy on the server's validation data; None if it has none.
    ``schema`` says how an example becomes an input, and the classes; ``layer`` is the network.
    ``run`` is the name of the run it comes from. ``sha256`` is the checksum of the tensors' file,
    empty before it is written; in a packed reward, of everything after the file's header.
    """

    participant: str
    width: float
    accuracy: float | None
    num_parameters: int
    dataset: str
    layer: PlainLayer
    schema: Schema
    run: str = ""
    sha256: str = ""

    def to_json(self) -> str:
        """Return the card as the text of card.json."""
        content = {
            "version": _CARD_VERSION,
            **vars(self),
            "layer": self.layer.to_json(),
            "schema": self.schema.to_json(),
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RewardCard":
        """Read the text of a card.json; raises ValueError for anything else."""
        try:
            content = json.loads(text)
            if content.pop("version") != _CARD_VERSION:
                raise ValueError("another version")
            content["layer"] = PlainLayer.from_json(content["layer"])
            content["schema"] = Schema.from_json(content["schema"])
            return _checked(cls(**content))
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("not a card") from error


def _checked(card: RewardCard) -> RewardCard:
    """Return ``card`` if its fields have their types, because a card may come from anywhere.

    Raises ValueError otherwise.
    """
    schema, numbers = card.schema, (int, float)
    fits = (
        all(isinstance(text, str) for text in (card.participant, card.dataset, card.run)),
        isinstance(card.sha256, str) and isinstance(card.num_parameters, int),
        isinstance(card.width, numbers) and isinstance(card.accuracy, (*numbers, type(None))),
        all(isinstance(name, str) for name in (*schema.classes, *schema.vocabulary)),
        all(isinstance(number, numbers) for number in (*schema.mean, *schema.std)),
        all(isinstance(side, int) and side > 0 for side in schema.shape) and bool(schema.shape),
    )
    if not all(fits):
        raise ValueError("not a card")
    return card


def safe_name(name: str) -> str:
    """Return ``name`` if it may become a file name; raises RewardError otherwise."""
    if not is_safe_name(name):
        raise RewardError(
            f"The participant name {name!r} cannot be a folder name; use {SAFE_CHARACTERS}."
        )
    return name


def save_reward(folder: Path, card: RewardCard, params: Params) -> Path:
    """Write a reward to ``folder``/<participant>, which only its owner can read; return that.

    model.safetensors holds the tensors of the card's layer, card.json everything else. The card
    is written last: if there is one, the reward is complete.
    """
    path = folder / safe_name(card.participant)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    tensors = save(dict(params))
    write_whole(path / _TENSORS, tensors)
    card = replace(card, sha256=hashlib.sha256(tensors).hexdigest())
    write_whole(path / _CARD, card.to_json())
    return path


def pack_reward(card: RewardCard, params: Params) -> bytes:
    """Return the whole reward as one safetensors file, with the card in its metadata.

    Every safetensors reader can read the tensors; ``load_reward`` needs nothing else.
    """
    # The header depends on the metadata, the bytes after it do not.
    digest = hashlib.sha256(_after_header(save(dict(params)))).hexdigest()
    text = replace(card, sha256=digest).to_json()
    packed: bytes = save(dict(params), metadata={"format": "pt", _CARD: text})
    return packed


def load_reward(path: str | Path) -> "nn.Module":
    """Return the reward in folder ``path``, or in that packed file, ready for inference.

    It is an `nn.Sequential` of ordinary layers, including BatchNorm, of the reward's own size. The
    only classes from this package are the addition of a residual block and the mean over a text.

    Raises:
        UserError: There is no reward, or its files are damaged. The text says which.
    """
    folder = Path(path)
    card = load_card(folder)
    try:
        return build_plain(card.layer, load_tensors(folder, card))
    except ValueError as error:
        reason = " ".join(str(error).split())[:200]
        raise RewardError(f"The reward in {folder} cannot be loaded: {reason}.") from error


def load_tensors(folder: Path, card: RewardCard) -> Params:
    """Return the tensors of the reward in ``folder``; raises RewardError if they are damaged."""
    packed = folder.is_file()
    path = folder if packed else folder / _TENSORS
    try:
        content = path.read_bytes()
        checked = _after_header(content) if packed else content
        if hashlib.sha256(checked).hexdigest() != card.sha256:
            raise RewardError(
                f"{path} does not match its card; it may be truncated or damaged, so get the "
                "reward again."
            )
        tensors: Params = load(content)
        return tensors
    except OSError as error:
        raise RewardError(f"{path} cannot be read ({error.strerror}).") from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise RewardError(f"{path} does not hold the tensors of a reward.") from error


def load_card(path: str | Path) -> RewardCard:
    """Return the card of the reward in folder ``path``, or in that packed file."""
    if Path(path).is_file():
        return _packed_card(Path(path))
    file = Path(path) / _CARD
    try:
        if file.stat().st_size > _MAX_CARD_BYTES:
            raise ValueError("the file is too large to be a card")
        return RewardCard.from_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewardError(f"{file} cannot be read; is {path} the folder of a reward?") from error
    except ValueError as error:
        raise RewardError(f"{file} is not a reward card of version {_CARD_VERSION}.") from error


def _packed_card(file: Path) -> RewardCard:
    try:
        with safe_open(file, framework="numpy") as opened:
            text = (opened.metadata() or {}).get(_CARD, "")
        return RewardCard.from_json(text)
    except (SafetensorError, ValueError, OSError) as error:
        raise RewardError(
            f"{file} is neither the folder of a reward nor a reward exported to safetensors with "
            f"a card of version {_CARD_VERSION}."
        ) from error


def _after_header(content: bytes) -> bytes:
    """Return the bytes of the tensors; a safetensors file begins with its header's length."""
    return content[8 + int.from_bytes(content[:8], "little") :]
