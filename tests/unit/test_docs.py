"""The pages that are written from the code are what the code would write; links lead somewhere."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aequa_flwr.cli.commands import make_parser
from aequa_flwr.cli.run import _read_config

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")


def generated() -> dict[str, Callable[[], str]]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: dict[str, Callable[[], str]] = module.PAGES
    return pages


@pytest.mark.parametrize("name", ["configuration.md", "commands.md"])
def test_a_reference_page_is_what_the_code_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("COLUMNS", "NO_COLOR"):
        monkeypatch.setenv(variable, "")  # what the page sets is undone
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert text == generated()[name](), "run `python docs/generate.py`"


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)  # a name of the API has a heading too
    plain = {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}
    return plain | set(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target) if target else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{page.name}: {target}#{anchor}"


def test_every_setting_is_explained() -> None:
    for line in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            assert line.split(" | ")[-1].strip("| "), line


def commands_of(page: Path) -> list[str]:
    """The lines of a page's console blocks that start our command, continued lines joined."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("aequa ")]


COMMANDS = sorted({line for page in PAGES for line in commands_of(page)})


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_a_page_is_one(line: str) -> None:
    """Its options exist and its settings go together; the tutorial's are also run."""
    arguments = shlex.split(line, comments=True)[1:]
    if "--help" in arguments or "..." in arguments:
        return
    options = make_parser(arguments[:1]).parse_args(arguments)
    if arguments[0] == "run" and not options.resume:
        _read_config(options)


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 30


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        # A link may lead to the network; nothing of the page may come from there.
        assert not re.search(r"<(script|img|link)[^>]*(src|href)=\"(https?:)?//", text), page.name
    names = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    text = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert [name for name in names if f'id="{name}"' not in text] == []
    assert "doc-module" not in text, "a function has the name of its module; write both"
