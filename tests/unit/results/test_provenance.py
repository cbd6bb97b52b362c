"""Which state of the code a run was made with."""

from pathlib import Path

from aequa_flwr import __version__
from aequa_flwr.results.provenance import code_digest, versions


def tree(folder: Path, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(f"{path.name}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return code_digest(folder)


def test_the_same_files_have_the_same_digest_wherever_they_are(tmp_path: Path) -> None:
    one = tree(tmp_path / "one", a="x = 1\n", slim__b="y = 2\n")
    assert tree(tmp_path / "two", slim__b="y = 2\n", a="x = 1\n") == one
    assert len(one) == 12
    # What Flower's bundle leaves out, or Python leaves behind, is no other code.
    (tmp_path / "one" / "published.toml").write_text("z = 3\n", encoding="utf-8")
    (tmp_path / "one" / "a.pyc").write_bytes(b"0")
    assert code_digest(tmp_path / "one") == one


def test_another_content_name_or_place_has_another(tmp_path: Path) -> None:
    digests = [
        tree(tmp_path / "1", a="x = 1\n"),
        tree(tmp_path / "2", a="x = 2\n"),
        tree(tmp_path / "3", b="x = 1\n"),
        tree(tmp_path / "4", slim__a="x = 1\n"),
        tree(tmp_path / "5", a="x = 1\n", b=""),
        tree(tmp_path / "6"),
    ]
    assert len(set(digests)) == len(digests)


def test_versions_are_those_that_decide_what_a_run_computes() -> None:
    found = versions()
    assert set(found) == {"aequa-flwr", "code", "flwr", "numpy", "python", "torch"}
    assert found["aequa-flwr"] == __version__
    assert versions() == found
