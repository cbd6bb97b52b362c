"""Reads a page as a browser does, and its drawings as numbers."""

from html.parser import HTMLParser

DASH = "\N{EN DASH}"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page, and fails on a tag that is closed in the wrong place or never."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.by_tag: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        self.by_tag.append((self.open[-1] if self.open else "", data))

    def headings(self) -> list[str]:
        return [text for tag, text in self.by_tag if tag == "h2"]

    def titles(self) -> list[str]:
        return [text for tag, text in self.by_tag if tag == "title"]

    def svg_labels(self) -> list[str]:
        drawings = [attrs for tag, attrs in self.tags if tag == "svg"]
        assert all(attrs.get("role") == "img" for attrs in drawings)
        return [attrs.get("aria-label") or "" for attrs in drawings]


def lines(page: Page, css: str = "line k") -> list[list[tuple[float, float]]]:
    found = []
    for tag, attrs in page.tags:
        if tag == "polyline" and (attrs["class"] or "").startswith(css):
            pairs = [place.split(",") for place in (attrs["points"] or "").split()]
            found.append([(float(x), float(y)) for x, y in pairs])
    return found
