"""The formats that a reward can be exported to, and the check of every exported file."""

import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from aequa_flwr.data import Schema
from aequa_flwr.errors import UserError
from aequa_flwr.files import write_whole
from aequa_flwr.options import in_short
from aequa_flwr.rewards.onnx_graph import onnx_model, takes_any_length
from aequa_flwr.rewards.reward import (
    RewardCard,
    load_card,
    load_reward,
    load_tensors,
    pack_reward,
    safe_name,
)

CARD_KEY = "card.json"
# The largest difference that float32 rounding explains between two programs, relative to the
# largest logit, or to 1 if all logits are smaller.
_TOLERANCE = 1e-4
# Not the batch size that the file was written with: it must work with any.
_BATCHES = (1, 5)
# A shape of gigabytes is a mistake in the card.
_MOST_NUMBERS = 10**8

# From inputs to logits, computed by an exported file.
Forward = Callable[[Tensor], Tensor]


class ExportError(UserError):
    """A reward that cannot be exported."""


@dataclass(frozen=True)
class _Loaded:
    path: Path
    card: RewardCard
    module: nn.Module


@dataclass(frozen=True)
class Format:
    """A format: its file suffix, what it is good for, and the packages that it needs.

    ``write`` returns the file's content for a reward. ``read`` returns a function that computes
    logits with the file.
    """

    suffix: str
    good_for: str
    packages: tuple[str, ...]
    write: Callable[[_Loaded], bytes]
    read: Callable[[Path], Forward]


@dataclass(frozen=True)
class Exported:
    """An exported file, and the largest difference between its logits and the original's."""

    path: Path
    num_bytes: int
    difference: float


def export_reward(reward: Path, kind: str, output: Path | None = None) -> Exported:
    """Export the reward in ``reward`` to the file ``output``; ``kind`` is a name in FORMATS.

    Without ``output`` the file is named after the participant, in the current folder. Every
    format includes the card. The file is read back and kept only if it gives the same logits on
    generated inputs; raises UserError otherwise.
    """
    form = FORMATS[kind]
    missing = [package for package in form.packages if find_spec(package) is None]
    if missing:
        raise ExportError(
            f"Exporting to {kind} needs {' and '.join(missing)}; run "
            f"`pip install {' '.join(missing)}`."
        )
    loaded = _Loaded(reward, load_card(reward), load_reward(reward))
    path = output or Path(f"{safe_name(loaded.card.participant)}{form.suffix}")
    _check_place(path)
    inputs = _inputs(loaded)
    expected = _expected(loaded, inputs)
    draft = path.with_name(f".{path.name}.unchecked")
    try:
        content = form.write(loaded)
        write_whole(draft, content)
        difference = _compare(kind, form.read(draft), inputs, expected)
        draft.replace(path)
    except (UserError, OSError):
        raise
    except Exception as error:  # the other program's own errors
        raise ExportError(
            f"The {kind} file of the reward does not run ({in_short(error)}), so it was not kept."
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return Exported(path, len(content), difference)


def _check_place(path: Path) -> None:
    if path.exists():
        raise ExportError(f"{path} exists already; choose another --output.")
    if not path.parent.is_dir():
        raise ExportError(f"{path.parent} is not a folder; create it, or choose another --output.")


def _inputs(reward: _Loaded) -> list[Tensor]:
    """Return batches of several sizes, and of several lengths if texts may have any length."""
    schema = reward.card.schema
    inputs = [_generated(schema, number) for number in _BATCHES]
    if takes_any_length(reward.module):
        longer = replace(schema, shape=(schema.shape[0] + 1,))
        inputs.append(_generated(longer, _BATCHES[-1]))
    return inputs


def _generated(schema: Schema, number: int) -> Tensor:
    """Return ``number`` random inputs that fit ``schema``; texts have random lengths."""
    if math.prod(schema.shape) > _MOST_NUMBERS:
        raise ExportError(f"The card's shape {schema.shape} is not that of an example.")
    generator = torch.Generator().manual_seed(number)
    if schema.kind != "tokens":
        return torch.randn(number, *schema.shape, generator=generator)
    length = schema.shape[0]
    tokens = torch.randint(1, schema.num_tokens, (number, length), generator=generator)
    ends = torch.randint(0, length + 1, (number, 1), generator=generator)
    return tokens.where(torch.arange(length) < ends, 0).int()


def _expected(reward: _Loaded, inputs: list[Tensor]) -> list[Tensor]:
    try:
        with torch.no_grad():
            return [reward.module(x) for x in inputs]
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ExportError(
            f"The reward in {reward.path} does not run on examples of its card's shape: {reason}."
        ) from error


def _compare(kind: str, run: Forward, inputs: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference; raises ExportError if rounding does not explain it."""
    largest = 0.0
    for x, logits in zip(inputs, expected, strict=True):
        got = run(x).detach()
        if got.shape != logits.shape:
            raise ExportError(
                f"The {kind} file of the reward gives logits of shape {tuple(got.shape)} instead "
                f"of {tuple(logits.shape)}, so it was not kept."
            )
        difference = float((got - logits).abs().max())
        # Not `>`, which is false for NaN.
        if not difference <= _TOLERANCE * max(1.0, float(logits.abs().max())):
            raise ExportError(
                f"The {kind} file of the reward gives logits that differ by up to "
                f"{difference:.2g}, so it was not kept."
            )
        largest = max(largest, difference)
    return largest


def _write_onnx(reward: _Loaded) -> bytes:
    example = _generated(reward.card.schema, 2)
    try:
        return onnx_model(reward.module, example, {CARD_KEY: reward.card.to_json()})
    except ValueError as error:
        raise ExportError(
            f"The reward in {reward.path} cannot be exported to onnx: {error}."
        ) from error


def _read_onnx(path: Path) -> Forward:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])


def _write_torchscript(reward: _Loaded) -> bytes:
    file = io.BytesIO()
    with _deprecated_is_fine():
        scripted = torch.jit.script(reward.module)
        torch.jit.save(scripted, file, _extra_files={CARD_KEY: reward.card.to_json()})
    return file.getvalue()


def _read_torchscript(path: Path) -> Forward:
    with _deprecated_is_fine():
        loaded: Forward = torch.jit.load(str(path))  # type: ignore[no-untyped-call]  # torch's
    return loaded


@contextmanager
def _deprecated_is_fine() -> Iterator[None]:
    """Silence torch's warning about TorchScript, which some programs still require."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated")
        yield


def _write_safetensors(reward: _Loaded) -> bytes:
    return pack_reward(reward.card, load_tensors(reward.path, reward.card))


FORMATS: Mapping[str, Format] = {
    "onnx": Format(
        ".onnx",
        "runs without torch and Python: onnxruntime in C, C#, Java, JavaScript or on a phone",
        ("onnx", "onnxruntime"),
        _write_onnx,
        _read_onnx,
    ),
    "torchscript": Format(
        ".pt",
        "runs in C++ with libtorch, in Python with torch alone; torch advises against it for "
        "new programs",
        (),
        _write_torchscript,
        _read_torchscript,
    ),
    "safetensors": Format(
        ".safetensors",
        "the whole reward as one file for Python and this package, without pickle",
        (),
        _write_safetensors,
        load_reward,
    ),
}
