"""The report's pictures in docs/: `python -m tests.browser.screenshots RUN DIR`.

RUN is the folder of a finished run. DIR gets the page at desktop and phone width, light and dark,
and the page of the run's first participant.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from aequa_flwr.report import render_page, render_personal_page
from aequa_flwr.results import load_record
from tests.browser.chromium import browser, find_chromium

_DESKTOP, _PHONE = 1280, 390
_HEIGHT = 800


def main(run: str, target: str) -> None:
    """Write the pictures."""
    executable = find_chromium()
    if executable is None:
        raise SystemExit("There is no Chromium on this machine.")
    record = load_record(Path(run))
    pages = {
        "report": render_page(record),
        "personal": render_personal_page(record, record.participants[0].name),
    }
    views = [
        ("report-desktop-light", "report", _DESKTOP, False),
        ("report-desktop-dark", "report", _DESKTOP, True),
        ("report-phone-light", "report", _PHONE, False),
        ("report-phone-dark", "report", _PHONE, True),
        ("personal-desktop-light", "personal", _DESKTOP, False),
        ("personal-phone-dark", "personal", _PHONE, True),
    ]
    with tempfile.TemporaryDirectory() as folder, browser(executable, Path(folder)) as tab:
        for name, page, width, dark in views:
            path = Path(folder) / f"{page}.html"
            path.write_text(pages[page], encoding="utf-8")
            tab.look(width, _HEIGHT, dark=dark)
            tab.open(path.as_uri())
            (Path(target) / f"{name}.png").write_bytes(_small(tab.screenshot()))


def _small(png: bytes) -> bytes:
    """Return the picture with 256 colours, which is all that text and lines need."""
    file = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        # Of all ways this one keeps colours that are rare, such as those of the dots.
        few = picture.convert("RGB").quantize(
            256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        few.save(file, "png", optimize=True)
    return file.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:])
