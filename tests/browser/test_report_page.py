"""The report in a real browser: it sorts, it speaks, it asks nobody for anything."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.report import render_comparison_page, render_page, render_personal_page
from aequa_flwr.results import RunRecord
from tests.browser.chromium import Tab, browser, find_chromium
from tests.unit.report.records import CASES, make_record

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"
)
DASH = "\N{EN DASH}"
# What the readers of a consortium meet: small, usual and large, undefined, refused, interrupted.
LOOKED_AT = (
    *("2", "10", "50", "3597", "undefined", "refused", "interrupted", "resumed", "thousands"),
    *("training-time", "compared", "no validation", "running", "partly rewarded"),
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    assert CHROMIUM is not None
    with browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def show(tab: Tab, folder: Path, record: RunRecord, width: int = 1280, dark: bool = False) -> None:
    path = folder / "report.html"
    path.write_text(render_page(record), encoding="utf-8")
    tab.look(width, 800, dark=dark)
    tab.open(path.as_uri())


def column(tab: Tab, index: int) -> list[str]:
    cells: list[str] = tab.evaluate(
        "Array.from(document.querySelector('table.sortable').tBodies[0].rows, "
        f"row => row.cells[{index}].textContent)"
    )
    return cells


def sorting(tab: Tab) -> list[str | None]:
    found: list[str | None] = tab.evaluate(
        "Array.from(document.querySelectorAll('table.sortable th'), "
        "head => head.getAttribute('aria-sort'))"
    )
    return found


def click_heading(tab: Tab, index: int) -> None:
    tab.click(f"table.sortable th:nth-child({index + 1}) button")


def test_clicks_sort_the_table_and_sort_it_back(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, CASES["10"])
    names = column(tab, 0)
    accuracies = [float(text.rstrip("%")) for text in column(tab, 4)]
    assert accuracies != sorted(accuracies)
    click_heading(tab, 4)
    assert [float(text.rstrip("%")) for text in column(tab, 4)] == sorted(accuracies, reverse=True)
    assert sorting(tab) == [None, None, None, None, "descending", None]
    click_heading(tab, 4)
    assert [float(text.rstrip("%")) for text in column(tab, 4)] == sorted(accuracies)
    assert sorting(tab)[4] == "ascending"
    click_heading(tab, 0)
    assert column(tab, 0) == names == sorted(names)
    assert sorting(tab) == ["ascending", None, None, None, None, None]


def test_what_is_missing_stays_last_and_thousands_are_numbers(tab: Tab, tmp_path: Path) -> None:
    first, *others = CASES["compared"].participants
    people = (replace(first, num_examples=987), *others)
    show(tab, tmp_path, replace(CASES["compared"], participants=people))
    for _ in range(2):
        click_heading(tab, 3)
        assert column(tab, 3)[-2:] == [DASH, DASH]
    click_heading(tab, 1)
    examples = [int(text.replace(",", "")) for text in column(tab, 1)]
    assert examples == sorted(examples, reverse=True)
    assert min(examples) < 1000 < max(examples)
    # A gain below nothing, which has a word behind it, is the smallest.
    click_heading(tab, 6)
    assert column(tab, 6)[-3].endswith("(loses)")


def test_the_keyboard_sorts_too(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, CASES["3597"])
    tab.evaluate("document.querySelector('table.sortable th:nth-child(3) button').focus()")
    tab.press("Enter")
    values = [float(text.rstrip("%")) for text in column(tab, 2)]
    assert len(values) == 3597
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("case", LOOKED_AT)
def test_a_page_asks_for_nothing_tells_its_plots_in_words_and_fits(
    tab: Tab, tmp_path: Path, case: str
) -> None:
    show(tab, tmp_path, CASES[case])
    if CASES[case].participants:
        click_heading(tab, 0)
    words = tab.accessible("image")
    assert len(words) == tab.evaluate("document.querySelectorAll('svg').length")
    assert all(len(text) > 60 and text.endswith(".") for text in words)
    for width in (1280, 390):
        for dark in (False, True):
            tab.look(width, 800, dark=dark)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    assert tab.requests() == [(tmp_path / "report.html").as_uri()]
    assert tab.complaints() == []


@pytest.mark.parametrize("kind", ["personal", "compared"])
def test_the_other_pages_ask_for_nothing_and_fit_too(tab: Tab, tmp_path: Path, kind: str) -> None:
    text = {
        "personal": render_personal_page(CASES["training-time"], "hospital-0003"),
        "compared": render_comparison_page([("a", CASES["10"]), ("b", CASES["compared"])]),
    }[kind]
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    for width in (1280, 390):
        tab.look(width, 800, dark=True)
        tab.open(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.requests() == [path.as_uri()]
        assert tab.complaints() == []
    assert all(len(words) > 60 for words in tab.accessible("image"))
    assert (tab.accessible("button") == []) == (kind == "personal")


def test_texts_can_be_read_in_both_colour_schemes(tab: Tab, tmp_path: Path) -> None:
    for dark in (False, True):
        show(tab, tmp_path, CASES["compared"], dark=dark)
        colours = ("text", "soft", "gains", "loses", "ideal", "narrow", "pink", "brown")
        values = [
            tab.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')")
            for name in (*colours, "paper", "panel")
        ]
        *inks, paper, panel = (luminance(value) for value in values)
        for name, ink in zip(colours, inks, strict=True):
            # WCAG 2: 4.5 for text, 3 for what is drawn.
            for ground in (paper, panel):
                assert contrast(ink, ground) >= (4.5 if name in ("text", "soft") else 3), name


def luminance(colour: str) -> float:
    """The relative luminance of a colour #rgb or #rrggbb, as WCAG 2 defines it."""
    digits = colour.strip().lstrip("#")
    digits = "".join(d * 2 for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_without_scripts_the_page_is_whole(tab: Tab, tmp_path: Path) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(tab, tmp_path, CASES["10"])
        headings, names = tab.accessible("columnheader"), tab.accessible("cell")
        buttons = tab.accessible("button")
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "Reward accuracy" in headings
    assert "hospital-0009" in names
    assert buttons == []


def test_names_with_markup_are_shown_as_they_are(tab: Tab, tmp_path: Path) -> None:
    evil = "<script>document.title='x'</script><img src=http://example.invalid/x onerror=alert(1)>"
    show(tab, tmp_path, make_record([0.5, 0.6, 0.7], names=[evil, "b", "[link](x)"]))
    assert column(tab, 0)[0] == evil
    assert tab.evaluate("document.title") == "Aequa run on digits"
    assert len(tab.requests()) == 1


def test_printed_pages_have_every_row_on_white(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, CASES["50"])
    tab.look(900, 800, dark=True, print_=True)
    box = tab.evaluate(
        "(() => { const b = document.querySelector('.scroll:has(table.sortable)');"
        "return [b.clientHeight, b.scrollHeight]; })()"
    )
    assert box[0] == box[1]
    text = tab.evaluate("getComputedStyle(document.body).color")
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (text, paper) == ("rgb(0, 0, 0)", "rgb(255, 255, 255)")
