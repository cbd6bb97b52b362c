"""`aequa reward`: shown, exported, or refused in a sentence."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.cli.main import main
from aequa_flwr.rewards import FORMATS
from tests.unit.rewards.saved import make_reward, run_onnx


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    try:
        code = main(["reward", *map(str, arguments)])
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_writes_a_file_called_after_the_participant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reward, x, logits = make_reward(tmp_path / "rewards", "small-cnn", 0.5)
    monkeypatch.chdir(tmp_path)
    code, out, _ = command(capsys, "export", reward, "--to", "onnx")
    assert code == 0
    assert "hospital-a.onnx" in out
    np.testing.assert_allclose(run_onnx(Path("hospital-a.onnx"), x), logits, atol=1e-4)
    code, _, err = command(capsys, "export", reward, "--to", "onnx")
    assert code == 1
    assert "hospital-a.onnx exists already" in err


def test_help_says_what_each_format_is_good_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "export", "--help")
    assert code == 0
    text = " ".join(out.split())
    for kind, form in FORMATS.items():
        assert f"{kind}: {form.good_for}" in text


def test_the_card_is_shown_in_plain_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reward, _, _ = make_reward(tmp_path, "lstm", 0.5)
    code, out, _ = command(capsys, "show", reward)
    assert code == 0
    text = " ".join(out.split())
    for words in ("hospital-a", "0.5", "90.00%", "my-run", "texts of up to 9 words",
                  "a vocabulary of 10 words", "0, 1, 2, 3, 4", "MeanState"):  # fmt: skip
        assert words in text, words
    reward, _, _ = make_reward(tmp_path / "images", "large-cnn", 0.25)
    code, out, _ = command(capsys, "show", reward)
    assert code == 0
    assert "images of 12 x 12 pixels, 3 channels" in " ".join(out.split())


@pytest.mark.parametrize("verb", [("export", "--to", "torchscript"), ("show",)])
def test_bad_input_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("some text", encoding="utf-8")
    damaged, _, _ = make_reward(tmp_path / "damaged", "small-cnn", 0.5)
    tensors = (damaged / "model.safetensors").read_bytes()
    (damaged / "model.safetensors").write_bytes(tensors[:-10])
    for path, says in (
        (tmp_path / "empty", "is .* the folder of a reward"),
        (tmp_path / "nowhere", "is .* the folder of a reward"),
        (tmp_path / "file", "is neither the folder of a reward nor"),
        (damaged, "it may be truncated"),
    ):
        code, _, err = command(capsys, verb[0], path, *verb[1:])
        assert code == 1
        assert err.count("\n") == 1
        assert err.startswith("aequa: ")
        assert re.search(says, err)


def test_an_unknown_format_or_folder_to_write_to_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    code, _, err = command(capsys, "export", reward, "--to", "keras")
    assert code == 2
    assert "invalid choice: 'keras'" in err
    output = tmp_path / "nowhere" / "x.onnx"
    code, _, err = command(capsys, "export", reward, "--to", "onnx", "--output", output)
    assert code == 1
    assert "nowhere is not a folder; create it, or choose another --output" in err


def test_without_its_packages_the_command_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    for package in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    code, _, err = command(capsys, "export", reward, "--to", "onnx")
    assert code == 1
    assert "needs onnx and onnxruntime; run `pip install onnx onnxruntime`" in err
