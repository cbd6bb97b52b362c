"""`aequa data`: what is there, and its schema."""

from pathlib import Path

import pytest

from aequa_flwr.data import load_schema
from tests.unit.cli.calling import run_main


def test_data_says_what_is_there_and_writes_the_schema_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "train.tsv").write_text("yes\tfine film\nno\tbad film\n" * 5, encoding="utf-8")
    arguments = ("data", "--dataset", "text", "--data-dir", str(tmp_path))
    schema = tmp_path / "federation.json"
    code, out, _ = run_main(capsys, *arguments, "--schema", str(schema))
    assert code == 0
    assert "Texts have up to 2 words; the vocabulary has 3 words." in out
    assert load_schema(schema).classes == ("no", "yes")
    code, _, err = run_main(capsys, *arguments, "--schema", str(schema))
    assert code == 1
    assert "exists already" in err
    (tmp_path / "odd.tsv").write_text("[/red]\ta b\n[bold]x\tb a\n" * 5, encoding="utf-8")
    odd = ("data", "--dataset", "text", "--data-dir", str(tmp_path / "odd.tsv"))
    code, out, _ = run_main(capsys, *odd, "--cache-dir", str(tmp_path / "[c"))
    assert code == 0
    assert "[/red]" in out
    assert "[bold]x" in out
    assert str(tmp_path / "[c") in out
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, out, _ = run_main(capsys, *odd, "--cache-dir", str(tmp_path / "file"))
    assert code == 0
    assert "prepared data is in" not in out
    (tmp_path / "none").mkdir()
    pictures = ("data", "--dataset", "images", "--data-dir", str(tmp_path / "none"))
    code, _, err = run_main(capsys, *pictures)
    assert code == 1
    assert "holds no class folder" in err
