"""`aequa reward`: describe a reward, or export it for other programs."""

import argparse
import math
from pathlib import Path

from rich.console import Console

from aequa_flwr.data import Schema

_MOST_CLASSES = 20


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    from aequa_flwr.rewards import FORMATS

    parser.description = "Describe a reward, or export it for other programs."
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reward = "the reward's folder, e.g. runs/my-run/rewards/participant-01, or its safetensors file"

    show = commands.add_parser("show", help="describe a reward in plain words")
    show.add_argument("reward", type=Path, metavar="REWARD", help=reward)
    show.set_defaults(command=show_command)

    export = commands.add_parser("export", help="export a reward for other programs")
    export.description = (
        "Export a reward as one file that includes its card: how an example becomes an input, the "
        "classes, the participant's name. The file is read back, and kept only if it gives the "
        "same logits as the original on generated inputs. "
        + " ".join(f"{kind}: {form.good_for}." for kind, form in FORMATS.items())
    )
    export.add_argument("reward", type=Path, metavar="REWARD", help=reward)
    export.add_argument("--to", required=True, choices=[*FORMATS], help="the format")
    export.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="new file (default: the participant's name, in the current folder)",
    )
    export.set_defaults(command=export_command)


def export_command(options: argparse.Namespace, console: Console) -> int:
    """Export the reward; return the exit code."""
    from aequa_flwr.rewards import export_reward

    done = export_reward(options.reward, options.to, options.output)
    _say(
        console,
        f"{done.path} ({done.num_bytes:,} bytes) gives the same logits as {options.reward}; the "
        f"largest difference on generated inputs is {done.difference:.1g}.",
    )
    return 0


def show_command(options: argparse.Namespace, console: Console) -> int:
    """Print the card; return the exit code."""
    from aequa_flwr.rewards import load_card, load_reward

    card = load_card(options.reward)
    network = load_reward(options.reward)
    accuracy = "not measured" if card.accuracy is None else f"{card.accuracy:.2%} (validation)"
    lines = {
        "Participant": card.participant,
        "Run": card.run or "unknown",
        "Data set": card.dataset,
        "Width": f"{card.width:g} of the full network",
        "Accuracy": accuracy,
        "Parameters": f"{card.num_parameters:,}",
        "Takes": _takes(card.schema),
        "Classes": _classes(card.schema),
    }
    for label, text in lines.items():
        _say(console, f"{label:12} {text}")
    _say(console, f"{'Network':12} {network}")
    return 0


def _takes(schema: Schema) -> str:
    if schema.kind == "tokens":
        known = f"a vocabulary of {len(schema.vocabulary):,} words"
        return f"texts of up to {schema.shape[0]} words, with {known}"
    if schema.kind == "images" and len(schema.shape) == 3:
        channels, height, width = schema.shape
        what = f"images of {height} x {width} pixels, {channels} channel{'s' * (channels > 1)}"
        return f"{what} of 0 to 255, {_normalised(schema, '(x / 255 - mean) / std')}"
    what = " x ".join(str(side) for side in schema.shape)
    return (
        f"{what} numbers ({math.prod(schema.shape):,}), {_normalised(schema, '(x - mean) / std')}"
    )


def _normalised(schema: Schema, formula: str) -> str:
    if not schema.mean:
        return "as " + formula.replace("mean", "0").replace("std", "1")
    if len(schema.mean) > 3:
        return f"as {formula} with the card's means and deviations"
    mean, std = (", ".join(f"{v:.4g}" for v in values) for values in (schema.mean, schema.std))
    return f"as {formula} with mean {mean} and std {std}"


def _classes(schema: Schema) -> str:
    names = ", ".join(schema.classes[:_MOST_CLASSES])
    more = schema.num_classes - _MOST_CLASSES
    return f"{names} and {more} more" if more > 0 else names


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
