"""`aequa reward`: what a reward is, and the same in forms that other programs read."""

import argparse
import math
from pathlib import Path

from rich.console import Console

from aequa_flwr.data import Schema

_MOST_CLASSES = 20


def describe(parser: argparse.ArgumentParser) -> None:
    """Say what the command does, and its options."""
    from aequa_flwr.rewards import FORMATS

    parser.description = "Look at a reward, or write it in a form that other programs read."
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reward = "the reward's folder, e.g. runs/my-run/rewards/participant-01, or its safetensors file"

    show = commands.add_parser("show", help="say in plain words what a reward is")
    show.add_argument("reward", type=Path, metavar="REWARD", help=reward)
    show.set_defaults(command=show_command)

    export = commands.add_parser("export", help="write a reward for other programs")
    export.description = (
        "Write a reward as one file for other programs, its card included: how an example becomes "
        "an input, the classes, the participant's name. Before the file is kept, it is read back "
        "and must give the same logits as the original on generated inputs. "
        + " ".join(f"{kind}: {form.good_for}." for kind, form in FORMATS.items())
    )
    export.add_argument("reward", type=Path, metavar="REWARD", help=reward)
    export.add_argument("--to", required=True, choices=[*FORMATS], help="the format")
    export.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="must not exist (default: the participant's name, in the current folder)",
    )
    export.set_defaults(command=export_command)


def export_command(options: argparse.Namespace, console: Console) -> int:
    """Write the file; returns the exit code."""
    from aequa_flwr.rewards import export_reward

    done = export_reward(options.reward, options.to, options.output)
    _say(
        console,
        f"{done.path} ({done.num_bytes:,} bytes) gives the same logits as {options.reward}; the "
        f"largest difference on generated inputs is {done.difference:.1g}.",
    )
    return 0


def show_command(options: argparse.Namespace, console: Console) -> int:
    """Print the card; returns the exit code."""
    from aequa_flwr.rewards import load_card, load_reward

    card = load_card(options.reward)
    network = load_reward(options.reward)
    accuracy = "not measured" if card.accuracy is None else f"{card.accuracy:.2%} (validation)"
    lines = {
        "Participant": card.participant,
        "Run": card.run or "unknown",
        "Data set": card.dataset,
        "Width": f"{card.width:g} of the whole network",
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
        known = f"{len(schema.vocabulary):,} words are known"
        return f"texts of up to {schema.shape[0]} words; {known}"
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
