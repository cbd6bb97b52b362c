"""A self-contained HTML document: its fences, its style, its sections and tables."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape

from aequa_flwr.report.script import SORT_TABLES
from aequa_flwr.report.style import CSS


def render_document(title: str, sections: Iterable[str], *, sorts: bool = True) -> str:
    """Return a whole page around ``sections``, which are HTML; always valid UTF-8.

    Nothing is loaded from anywhere. ``sorts`` is whether there is a table that readers can sort.
    """
    # The second fence after the escaping: nothing is fetched, and nothing runs or styles the page
    # but the two texts whose checksums stand here.
    script = f"; script-src '{_checksum(SORT_TABLES)}'" if sorts else ""
    policy = (
        f"default-src 'none'; style-src '{_checksum(CSS)}'{script}; base-uri 'none'; "
        "form-action 'none'"
    )
    end = f"<script>{SORT_TABLES}</script>\n" if sorts else ""
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"{''.join(sections)}</main>\n{end}</body>\n</html>\n"
    )
    # A path in an error's text may hold half a character, which no file could be written with.
    return text.encode("utf-8", "replace").decode("utf-8")


def _checksum(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def section(heading: str, content: str) -> str:
    """Return a section; ``content`` is HTML, the heading is text."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}\n</section>\n"


def note(*sentences: str) -> str:
    """Return a paragraph of plain text in small letters; nothing without any."""
    text = " ".join(sentence for sentence in sentences if sentence)
    return f'<p class="note">{escape(text)}</p>\n' if text else ""


def folded(summary: str, content: str) -> str:
    """Return HTML that opens when its summary is selected; on paper it is open."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}</details>\n"


def table(
    name: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    css: str = "numbers",
) -> str:
    """Return a table of texts that scrolls in a box of its own, named for who cannot see it.

    The class "words" is for tables of text; with "sortable" readers can sort it.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    # Focusable, or who has no mouse could not scroll it.
    return (
        f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">'
        f'<table class="{css}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n'
        "</table></div>\n"
    )
