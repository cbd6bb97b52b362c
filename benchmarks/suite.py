"""All benchmarks, printed and written to docs/benchmarks.md.

    python benchmarks/suite.py          # or `make bench`

The two sides of each ratio are measured in the same run, interleaved and repeated.
"""

import argparse
import os
import platform
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import allocation
import exposure
import fold
import message_bytes
import round_ratio
import server_memory
import simulated
from ratio import Row

from aequa_flwr.slim.networks import HOMES

_PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_PACKAGES = ("aequa-flwr", "flwr", "torch", "numpy", "scipy", "ray")


def sections() -> Iterator[tuple[str, str, Iterator[Row]]]:
    """Yield (title, command, rows); rows are measured when they are iterated over."""
    yield (
        "An Aequa round beside a FedAvg round",
        "round_ratio.py --repeats 5",
        round_ratio.rows(list(HOMES), 5),
    )
    yield "A simulated round beside a plain PyTorch loop", "simulated.py", simulated.rows(3)
    yield "Hosted participants", "simulated.py", simulated.hosting_rows(2)
    yield "Folding updates", "fold.py", fold.rows(15)
    yield "Memory of the server", "server_memory.py", server_memory.rows()
    yield "Allocation", "allocation.py", allocation.rows()
    yield "What exposed accuracy costs a round", "exposure.py", exposure.rows(exposure.IMAGES)
    yield "Bytes on the wire", "message_bytes.py", message_bytes.rows()


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")


def goal_text(row: Row) -> str:
    """Return the goal as text, marked if a ratio misses it."""
    if not row.goal[:1].isdigit():
        return row.goal
    ratio = row.value.replace(".", "").isdigit() and row.goal.replace(".", "").isdigit()
    missed = ratio and float(row.value) > float(row.goal)
    return f"at most {row.goal}" + ": **missed**" * missed


def measured(title: str, command: str, rows: Iterator[Row], start: float) -> str:
    """Measure a section and print its rows as they arrive; return its text."""
    print(f"\n{title}", flush=True)
    text = [f"## {title}", "", f"`python benchmarks/{command}`", ""]
    text += ["| | | spread | goal |", "|---|---|---|---|"]
    for row in rows:
        print(f"  {row}", flush=True)
        text.append(f"| {row.what} | {row.value} | {row.spread} | {goal_text(row)} |")
    print(f"  ({time.monotonic() - start:.0f} s so far)", flush=True)
    return "\n".join(text)


def measure_again(page: Path, title: str, start: float) -> None:
    """Measure one section again and replace it in the page; a new one comes last."""
    kept = page.read_text(encoding="utf-8").rstrip().split("\n\n## ")
    section = next((section for section in sections() if section[0] == title), None)
    if section is None:
        raise SystemExit(f"There is no section {title!r}.")
    found = [k for k, section in enumerate(kept) if section.startswith(f"{title}\n")]
    if not found:
        found, kept = [len(kept)], [*kept, ""]
    again = measured(*section, start).removeprefix("## ")
    when = f"Measured again on {datetime.now(UTC):%Y-%m-%d}, after the others."
    heading, command, rest = again.split("\n\n", maxsplit=2)
    kept[found[0]] = "\n\n".join([heading, command, when, rest])
    page.write_text("\n\n## ".join(kept) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=_PAGE)
    parser.add_argument("--again", metavar="TITLE", help="measure one section of the page again")
    options = parser.parse_args()
    start = time.monotonic()
    if options.again is not None:
        measure_again(options.output, options.again, start)
        return
    text = [measured(*section, start) for section in sections()]
    minutes = (time.monotonic() - start) / 60
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    head = [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d} in {minutes:.0f} minutes, on "
        f"{len(os.sched_getaffinity(0))} cores of {processor()}, without a GPU; "
        f"Python {platform.python_version()}, {versions}.",
        "Ratios are medians of interleaved measurements in one run; the spread is their middle "
        "half. Other work on the machine slows both sides, but not always equally. "
        "Goals were set before anything was measured.",
        "",
        "A step of small-cnn on digits of 8 x 8 takes 2 ms. Most of that is the fixed cost of "
        "torch's calls, and a second width adds calls. A convolution that is split where a narrow "
        "width ends computes its gradients in blocks of 8 channels, as torch does "
        "(`python benchmarks/cut_convolution.py`).",
    ]
    options.output.write_text("\n\n".join(["\n".join(head), *text]) + "\n", encoding="utf-8")
    print(f"\n{minutes:.0f} minutes; written to {options.output}")


if __name__ == "__main__":
    main()
