"""`aequa report`: every form of a run's result, and the pages of its participants."""

import json
import webbrowser
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.results import SCHEMA_VERSION, save_record
from tests.unit.cli.calling import run_main
from tests.unit.report.records import CASES, make_record

Capture = pytest.CaptureFixture[str]
SCHEMA = f'"schema": {SCHEMA_VERSION}'


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("html", b"<!DOCTYPE html>"),
        ("md", b"# Aequa run on digits"),
        ("json", b'{\n  "schema": 1'),
        ("csv", b"name,num_examples"),
        ("png", b"\x89PNG"),
    ],
)
def test_a_form_is_written_to_the_runs_folder_or_where_it_is_wanted(
    capsys: Capture, run: Path, tmp_path: Path, form: str, begins: bytes
) -> None:
    code, out, _ = run_main(capsys, "report", str(run), "--format", form)
    assert (code, out.strip()) == (0, str(run / f"report.{form}"))
    assert (run / f"report.{form}").read_bytes().startswith(begins)
    wanted = tmp_path / "elsewhere"
    arguments = ("report", str(run / "record.json"), "--format", form, "--output", str(wanted))
    assert run_main(capsys, *arguments)[0] == 0
    assert wanted.read_bytes().startswith(begins)
    if form == "png":
        return
    code, out, _ = run_main(capsys, "report", str(run), "--format", form, "--output", "-")
    assert code == 0
    assert out.encode() == wanted.read_bytes()


def test_without_a_format_it_is_printed_and_nothing_is_written(capsys: Capture, run: Path) -> None:
    code, out, _ = run_main(capsys, "report", str(run))
    assert code == 0
    assert "Pearson" in out
    assert [path.name for path in run.iterdir()] == ["record.json"]


def test_the_terminal_says_what_to_change_where_widths_leave_no_room(
    capsys: Capture, run: Path
) -> None:
    advice = "A p-min below 0.25 (--set p-min=VALUE) makes narrower rewards available."
    _, out, _ = run_main(capsys, "report", str(run))
    assert advice not in " ".join(out.split())
    record = make_record([0.1, 0.2, 0.7])
    assert record.measures is not None
    save_record(run, replace(record, measures=replace(record.measures, pearson=0.5)))
    _, out, _ = run_main(capsys, "report", str(run))
    assert advice in " ".join(out.split())


def test_the_page_is_opened_in_the_browser(
    capsys: Capture, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_page(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    assert run_main(capsys, "report", str(run), "--open")[0] == 0
    assert opened == [(run / "report.html").absolute().as_uri()]
    assert (run / "report.html").exists()
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    code, _, err = run_main(capsys, "report", str(run), "--open", "--format", "html")
    assert code == 1
    assert "No browser was found; open" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--open", "--format", "csv"), "--open shows the HTML page"),
        (("--open", "--output", "-"), "--open needs a file"),
        (("--output", "x"), "--output needs a --format: one of html"),
        (("--format", "png", "--output", "-"), "A PNG cannot be printed"),
        (("--format", "pdf"), "invalid choice: 'pdf'"),
    ],
)
def test_options_that_cannot_be_meant(
    capsys: Capture, run: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = run_main(capsys, "report", str(run), *arguments)
    assert code == 2
    assert says in err
    assert [path.name for path in run.iterdir()] == ["record.json"]


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text.replace(SCHEMA, '"schema": 99'), "was written by a newer version (99)"),
        (lambda text: text[: len(text) // 2], "is incomplete or damaged; `aequa run --resume`"),
        (lambda _text: "", "is incomplete or damaged"),
        (lambda _text: None, "is {run} the folder of a run?"),
        (lambda text: text.replace('"name"', '"nome"'), "is not a record of version 1 to 4"),
    ],
)
def test_a_record_that_cannot_be_read_is_one_sentence(
    capsys: Capture, run: Path, tmp_path: Path, spoil: object, says: str, command: str
) -> None:
    assert callable(spoil)
    path = run / "record.json"
    content = spoil(path.read_text(encoding="utf-8"))
    path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    good = tmp_path / "good"
    good.mkdir()
    save_record(good, CASES["2"])
    arguments = (str(run), "--format", "html") if command == "report" else (str(good), str(run))
    code, _, err = run_main(capsys, command, *arguments)
    assert code == 1
    assert says.format(run=run) in err
    assert err.startswith("aequa: ")
    assert err.count("\n") == 1
    assert not (run / "report.html").exists()


def test_everybody_gets_a_page_and_no_file_is_overwritten(
    capsys: Capture, run: Path, tmp_path: Path
) -> None:
    pages = tmp_path / "some" / "pages"
    code, out, _ = run_main(capsys, "report", str(run), "--personal", str(pages))
    assert code == 0
    assert f"Wrote 3 pages to {pages}" in out
    names = {"hospital-0000.html", "hospital-0001.html", "hospital-0002.html"}
    assert {path.name for path in pages.iterdir()} == names
    for path in pages.iterdir():
        text = path.read_text(encoding="utf-8")
        assert path.stem in text
        assert not any(name.removesuffix(".html") in text for name in names - {path.name})
    (pages / "hospital-0000.html").unlink()
    (pages / "hospital-0002.html").write_text("mine", encoding="utf-8")
    code, _, err = run_main(capsys, "report", str(run), "--personal", str(pages))
    assert code == 1
    assert "hospital-0001.html exists already; choose another folder" in err
    assert (pages / "hospital-0002.html").read_text(encoding="utf-8") == "mine"
    assert not (pages / "hospital-0000.html").exists()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("../x", "b"), "The name '../x' cannot be a file name"),
        (("a/b", "b"), "cannot be a file name"),
        (("<b>", "b"), "cannot be a file name"),
        (("Clinic", "clinic"), "Two participants would have the file name clinic"),
        ((), "No participant joined this run"),
    ],
)
def test_names_that_are_no_file_names_are_refused_before_anything_is_written(
    capsys: Capture, tmp_path: Path, names: tuple[str, ...], says: str
) -> None:
    record = make_record([0.5, 0.6])
    people = (replace(p, name=name) for p, name in zip(record.participants, names, strict=False))
    save_record(tmp_path, replace(record, participants=tuple(people)))
    pages = tmp_path / "pages"
    code, _, err = run_main(capsys, "report", str(tmp_path), "--personal", str(pages))
    assert code == 1
    assert says in err
    assert not pages.exists()


def test_help_says_what_the_personal_pages_are_for(capsys: Capture) -> None:
    code, out, _ = run_main(capsys, "report", "--help")
    assert code == 0
    assert "nothing about the others" in " ".join(out.split())


def test_the_json_of_a_run_that_failed_is_json(capsys: Capture, tmp_path: Path) -> None:
    save_record(tmp_path, CASES["failed"])
    code, out, _ = run_main(capsys, "report", str(tmp_path), "--format", "json", "--output", "-")
    assert code == 0
    assert json.loads(out)["measures"] is None


def test_report_refuses_what_is_no_run(capsys: Capture, tmp_path: Path) -> None:
    code, _, err = run_main(capsys, "report", str(tmp_path))
    assert code == 1
    assert "the folder of a run" in err
