"""Where a run is, as a file that others read while it is written."""

from pathlib import Path

from aequa_flwr.results.progress import PROGRESS_FILE, Progress, ProgressReader, ProgressWriter


def test_progress_is_read_once_and_never_half(tmp_path: Path) -> None:
    write, reader = ProgressWriter(tmp_path), ProgressReader(tmp_path)
    assert list(reader.new()) == []
    first, second = Progress("join", 1, 2), Progress("training", 3, 9, 0.5, 0.9, 7.0)
    write(first)
    assert list(reader.new()) == [first]
    write(second)
    with (tmp_path / PROGRESS_FILE).open("a", encoding="utf-8") as file:
        file.write('{"stage": "tra')
    assert list(reader.new()) == [second]
    assert list(reader.new()) == []


def test_progress_that_begins_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    writer, reader = ProgressWriter(tmp_path), ProgressReader(tmp_path)
    assert list(reader.new()) == []
    for done in range(5):
        writer(Progress("training", done, 9))
    assert len(list(reader.new())) == 5
    (tmp_path / "progress.jsonl").unlink()
    writer(Progress("training", 7, 9))
    assert list(reader.new()) == [Progress("training", 7, 9)]
    with (tmp_path / "progress.jsonl").open("ab") as file:
        file.write(
            b'no json\n{"stage": "a", "of a newer version": 1}\n[]\n\xff\n{"stage": "b"}\n{"st'
        )
    assert list(reader.new()) == [Progress("b")]
