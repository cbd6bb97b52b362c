"""How long the largest report takes to open: `python -m tests.browser.opening`.

Prints its weight, the time until the page is loaded and laid out, and the time that the page's
own thread worked for it, which other programs on the machine do not lengthen.
"""

import statistics
import tempfile
import time
from pathlib import Path

from aequa_flwr.report import render_page
from tests.browser.chromium import Tab, browser, find_chromium
from tests.unit.report.records import CASES

_REPEATS = 5


def main() -> None:
    """Open both pages of 3,597 participants some times, and print the medians."""
    executable = find_chromium()
    if executable is None:
        raise SystemExit("There is no Chromium on this machine.")
    with tempfile.TemporaryDirectory() as folder:
        for case in ("3597", "thousands"):
            page = Path(folder) / f"{case}.html"
            page.write_text(render_page(CASES[case]), encoding="utf-8")
            profile = Path(folder) / f"profile-{case}"
            with browser(executable, profile) as tab:
                times = [_open(tab, page) for _ in range(_REPEATS)]
            wall, work = (statistics.median(column) for column in zip(*times, strict=True))
            print(
                f"{case}: {page.stat().st_size / 1e6:.2f} MB, open after {wall:.2f} s, of which "
                f"the page worked {work:.2f} s (medians of {_REPEATS})"
            )


def _open(tab: Tab, page: Path) -> tuple[float, float]:
    """Return the seconds until the page is there, and those its thread was busy."""
    tab.open("about:blank")
    tab.look(1280, 800)
    tab.call("Performance.enable", timeDomain="threadTicks")
    before, start = _busy(tab), time.perf_counter()
    tab.open(page.as_uri())
    tab.evaluate("document.body.getBoundingClientRect().height")  # lays everything out
    wall = time.perf_counter() - start
    return wall, _busy(tab) - before


def _busy(tab: Tab) -> float:
    metrics = tab.call("Performance.getMetrics")["metrics"]
    return next(float(entry["value"]) for entry in metrics if entry["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
