"""How a reader checks a run: the command that repeats it, what goes on with it, what it ran on."""

import shlex
from collections.abc import Mapping
from html import escape

from aequa_flwr.errors import UserError
from aequa_flwr.methods import Value
from aequa_flwr.report.document import folded, note, section, table
from aequa_flwr.report.words import moment
from aequa_flwr.results import RunRecord
from aequa_flwr.settings import RunConfig

# Settings that `aequa run` has an option for; the others are given with --set.
_OPTIONS = (
    *("method", "dataset", "partition", "participants", "network", "rounds", "participation"),
    *("contribution", "reward", "seed", "solver", "device"),
)
# Said even where it is the default: they are what one looks for.
_ALWAYS = ("dataset", "seed")
_PLACE = "DIR"
HOW_TO_CHECK = "How to check this run"


def rerun_command(config: Mapping[str, Value]) -> str | None:
    """Return the shortest `aequa run` with the settings of ``config``, a record's.

    None where this version knows no run with them. Where the data lies is not in a record; DIR
    stands for it.
    """
    known = RunConfig.parse({}).to_record().keys()
    wanted = {key: value for key, value in config.items() if key in known}
    given = dict(wanted)
    if not _means(given, wanted):
        return None
    for key in wanted:
        if key not in _ALWAYS:
            fewer = {other: value for other, value in given.items() if other != key}
            given = fewer if _means(fewer, wanted) else given
    words = ["aequa", "run"]
    for key, value in given.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words += [f"--{key}", text] if key in _OPTIONS else ["--set", f"{key}={text}"]
        if key == "dataset" and value != "digits":
            words += ["--data-dir", _PLACE]
    return shlex.join(words)


def _means(given: Mapping[str, Value], wanted: Mapping[str, Value]) -> bool:
    """Return whether a run of the settings ``given`` has all those of ``wanted``."""
    try:
        config = RunConfig.parse({**given, "data-dir": _PLACE})
    except UserError:
        return False
    resolved = config.to_record()
    if wanted.get("p-min") != "auto":  # the record of a run that began has a number
        resolved["p-min"] = config.narrowest()
    return all(resolved[key] == value for key, value in wanted.items())


def how_to_check(record: RunRecord) -> str:
    """Return the section with command, seed, versions and configuration."""
    config = [(key, str(value)) for key, value in sorted(record.config.items())]
    versions = sorted(record.versions.items())
    return section(
        HOW_TO_CHECK,
        _go_on(record)
        + _repeat(record)
        + "<p>All numbers on this page come from <code>record.json</code> in the same folder; "
        "<code>aequa report RUN</code> shows them again. Each reward has a <code>card.json</code> "
        "with its width, its accuracy and the checksum of its file.</p>\n"
        + (table("Versions", ("Package", "Version"), versions, css="words") if versions else "")
        + folded(
            f"All {len(config)} settings",
            table("Configuration", ("Setting", "Value"), config, css="words"),
        ),
    )


def _go_on(record: RunRecord) -> str:
    if record.status == "completed":
        return note(resumptions(record))
    if_dead = " If its process has ended:" if record.status == "running" else ""
    return (
        f"<p>The run is not finished.{if_dead} <code>aequa run --resume RUN</code> resumes it from "
        "its last checkpoint, where RUN is the folder of this page. It ends with the same result "
        f"as an uninterrupted run.</p>\n{note(resumptions(record))}"
    )


def resumptions(record: RunRecord) -> str:
    """Return when the run was resumed, as plain sentences; empty if it never was."""
    times = [moment(text) for text in record.times.resumed]
    if not times:
        return ""
    *others, last = times
    when = f"{', '.join(others)} and {last}" if others else last
    return (
        f"The run was interrupted and resumed from its last checkpoint on {when}. This does not "
        "change its result."
    )


def _repeat(record: RunRecord) -> str:
    seed = escape(str(record.config.get("seed", "not recorded")))
    # Data that a program brought along are in no folder that a command could name.
    brought = record.data is not None and record.data.dataset == "own"
    command = None if brought else rerun_command(record.config)
    again = (
        "<p>Repeat the run with this command and the versions below:</p>\n"
        f'<pre tabindex="0"><code>{escape(command)}</code></pre>\n'
        if command is not None
        else "<p>To repeat the run, start the same program with the settings and versions below."
        "</p>\n"
        if brought
        else "<p>To repeat the run, use the settings and the versions below.</p>\n"
    )
    where = f"{_PLACE} is the folder of the data. " if command and f" {_PLACE}" in command else ""
    return (
        f"{again}<p>{where}The seed is <strong>{seed}</strong>. On the same machine, the same "
        "seed gives the same <code>record.json</code> except for its times. A run on real nodes "
        "also needs <code>--connection NAME</code>, and those nodes.</p>\n"
    )
