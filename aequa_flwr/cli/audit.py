"""`aequa audit`: try attacks on a federation, and show what each gains."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aequa_flwr.attacks import ATTACKS, Attack, find_attack
from aequa_flwr.audit import (
    Outcomes,
    Row,
    matrix,
    render_audit_markdown,
    render_audit_page,
    rows_of,
    run_trials,
    summary,
    trials_of,
)
from aequa_flwr.cli.run import read_pairs
from aequa_flwr.contribution import ESTIMATORS
from aequa_flwr.deployment import Bars
from aequa_flwr.errors import UsageError
from aequa_flwr.files import write_whole
from aequa_flwr.server import check_settings, prepare_simulation
from aequa_flwr.settings import RunConfig
from aequa_flwr.simulation import count_cores

_SETTINGS = (
    "dataset", "data-dir", "cache-dir", "partition", "participants", "network", "rounds", "reward",
)  # fmt: skip
_PLACES = ("data-dir", "cache-dir")


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Simulate a federation, first honestly and then with a participant who cheats, in one way "
        "after the other. Shows what cheating gains. Exits with 1 if an attack gains more than "
        "the tolerance. Start the same command again to go on where it stopped."
    )
    parser.epilog = f"The attacks, the most telling first: {', '.join(ATTACKS)}."
    add = parser.add_argument
    for key in _SETTINGS:
        add(f"--{key}", help="as for `aequa run`")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting")
    add(
        "--contribution",
        default="standalone",
        help=f"one or more of {', '.join(ESTIMATORS)}, separated by commas, or all (default "
        "standalone); several need post-training rewards",
    )
    add("--attacks", help="only these, separated by commas; your own as package.module:name")
    add("--seeds", default="1-3", help="seeds, as 1-3 or 1,5 (default 1-3)")
    add("--minutes", type=float, default=10.0, help="start no trial after this time (default 10)")
    add("--tolerance", type=float, default=1.0, help="gain in points that counts (default 1)")
    add("--at-once", type=int, help="trials at the same time (default: one per core)")
    add("--output", type=Path, default=Path("audit"), help="folder of the results (default audit)")
    add("--connection", help=argparse.SUPPRESS)
    parser.set_defaults(command=audit_command)


def audit_command(options: argparse.Namespace, console: Console) -> int:
    """Run the audit and show its table; return the exit code."""
    if options.connection is not None:
        raise UsageError(
            "Attacks are simulated only, so that nobody's federation is harmed; leave out "
            "--connection."
        )
    _check_numbers(options)
    seeds, attacks = _seeds(options.seeds), _attacks(options.attacks)
    methods, config = _settings(options)
    settings = config.to_flower()
    prepare_simulation(config)  # what is wrong with the data is said once, and at once
    folder = options.output.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(folder, settings, methods)
    bars = Bars(console)
    bars.start()
    try:
        whole = run_trials(
            trials_of(settings, methods, attacks, seeds),
            outcomes,
            at_once=options.at_once or count_cores(),
            minutes=options.minutes,
            tell=lambda done, total, last: _tell(bars, done, total, last),
        )
    except KeyboardInterrupt:
        console.print("Interrupted; start the same command again to go on.", highlight=False)
        return 130
    finally:
        bars.stop()
    tolerance = options.tolerance / 100
    rows = rows_of(attacks, methods, seeds, outcomes.by_key)
    facts = (
        f"Seeds {', '.join(map(str, seeds))}. The attacker is the participant with the median "
        "number of examples.",
        "Settings: " + ", ".join(f"{key}={value}" for key, value in settings.items()) + ".",
    )
    page = folder / "audit.html"
    write_whole(page, render_audit_page(rows, tolerance, facts, whole=whole).encode())
    write_whole(folder / "audit.md", render_audit_markdown(rows, tolerance).encode())
    _show(console, rows, tolerance)
    console.print(summary(rows, tolerance, whole=whole), highlight=False, markup=False)
    console.print(f"The page is {page}", highlight=False, markup=False, soft_wrap=True)
    return int(any(row.gain and fmean(row.gain) > tolerance for row in rows))


def _check_numbers(options: argparse.Namespace) -> None:
    if options.at_once is not None and options.at_once < 1:
        raise UsageError(f"--at-once {options.at_once} is not possible; use 1 or more.")
    for name in ("minutes", "tolerance"):
        value = getattr(options, name)
        if not 0 <= value < float("inf"):
            raise UsageError(f"--{name} {value:g} is not possible; use 0 or more.")


def _tell(bars: Bars, done: int, total: int, last: str) -> None:
    text = f"Trial {done} of {total}: {last}"
    if not bars.set("audit", text, fraction=done / total):
        bars.print(text)


def _settings(options: argparse.Namespace) -> tuple[tuple[str, ...], RunConfig]:
    values: dict[str, object] = dict(read_pairs(options.set))
    for key in _SETTINGS:
        given = getattr(options, key.replace("-", "_"))
        if given is not None:
            values[key] = given
    for key in _PLACES:
        if values.get(key):
            values[key] = str(Path(str(values[key])).expanduser().absolute())
    text = ",".join(ESTIMATORS) if options.contribution == "all" else options.contribution
    # An option of a method also stands behind a comma.
    methods = _split_methods(text)
    configs = [RunConfig.parse({**values, "contribution": kind}) for kind in methods]
    for config in configs:
        check_settings(config)
    if len(methods) > 1 and configs[0].reward != "post-training":
        raise UsageError(
            f"reward = {configs[0].reward!r} trains differently with every contribution; give "
            "--contribution one method."
        )
    if configs[0].behaviour:
        raise UsageError("behaviour is an attack itself; leave it out of an audit.")
    return tuple(methods), configs[0]


def _split_methods(text: str) -> list[str]:
    methods: list[str] = []
    for part in text.split(","):
        if "=" in part and ":" not in part and methods:
            methods[-1] += f",{part}"
        else:
            methods.append(part.strip())
    return methods


def _attacks(text: str | None) -> Mapping[str, Attack]:
    if text is None:
        return ATTACKS
    return {name: find_attack(name) for name in (part.strip() for part in text.split(","))}


def _seeds(text: str) -> list[int]:
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            seeds += range(int(first), int(last or first) + 1)
    except ValueError:
        raise UsageError(f"--seeds {text} cannot be read; write 1-3 or 1,5.") from None
    if not seeds:
        raise UsageError(f"--seeds {text} names no seed; write 1-3 or 1,5.")
    return list(dict.fromkeys(seeds))


def _show(console: Console, rows: list[Row], tolerance: float) -> None:
    """Print a line for each attack, which a terminal has room for: the page has all numbers."""
    head, lines = matrix(rows, tolerance)
    table = Table(*head, box=box.SIMPLE, pad_edge=False, highlight=False)
    for line in lines:
        table.add_row(*(Text(cell, style="red" if "PAYS" in cell else "") for cell in line))
    console.print(table)
