"""Rewards in other forms: the same logits in each, and the card goes along."""

import json
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from aequa_flwr.cli.main import main
from aequa_flwr.data import Schema
from aequa_flwr.exporting import FORMATS, ExportError, export_reward
from aequa_flwr.exporting.onnx_graph import onnx_model
from aequa_flwr.rewards import RewardCard, RewardError, load_card, load_reward, save_reward
from aequa_flwr.slim.networks import BUILDERS, HOMES, build_network
from aequa_flwr.slim.plain import PlainLayer, build_plain
from tests.property.test_slim_laws import SCHEMAS, network_and_batch


def make_reward(folder: Path, name: str, width: float) -> tuple[Path, torch.Tensor, torch.Tensor]:
    """Save a reward; returns its folder, inputs, and the slimmable network's logits for them."""
    network, x = network_and_batch(name)
    card = RewardCard(
        participant="hospital-a",
        width=width,
        accuracy=0.9,
        num_parameters=network.num_parameters(width),
        dataset="some",
        layer=network.plain(width),
        schema=SCHEMAS[name],
        run="my-run",
    )
    path = save_reward(folder, card, network.plain_params(network.dump(width), width))
    with torch.no_grad():
        return path, x, network(x, width)


def run_onnx(path: Path, x: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"input": x.numpy()})[0])


def run_torchscript(path: Path, x: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deprecated")
        logits: torch.Tensor = torch.jit.load(str(path))(x)  # type: ignore[no-untyped-call]  # torch's
    return logits


RUNS: dict[str, Callable[[Path, torch.Tensor], torch.Tensor]] = {
    "onnx": run_onnx,
    "torchscript": run_torchscript,
    "safetensors": lambda path, x: load_reward(path)(x),
}


@pytest.mark.parametrize(
    ("kind", "width"),
    [("onnx", 0.25), ("onnx", 0.7), ("onnx", 1.0), ("torchscript", 0.25), ("safetensors", 0.25)],
)
@pytest.mark.parametrize("name", [*BUILDERS])
def test_every_network_has_the_same_logits_in_every_format(
    tmp_path: Path, name: str, kind: str, width: float
) -> None:
    reward, x, logits = make_reward(tmp_path, name, width)
    done = export_reward(reward, kind, tmp_path / "out")
    assert done.num_bytes == done.path.stat().st_size
    assert done.difference < 1e-4
    # Any number of examples, one at a time as well.
    for rows in (slice(None), slice(2, 3)):
        with torch.no_grad():
            got = RUNS[kind](done.path, x[rows])
        torch.testing.assert_close(got, logits[rows], rtol=1e-4, atol=1e-4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hospital-a", "out"]


@pytest.mark.parametrize("name", [*BUILDERS])
def test_the_networks_of_the_paper_run_in_onnxruntime_at_their_own_size(
    tmp_path: Path, name: str
) -> None:
    schema = HOMES[name]
    network = build_network(name, schema, init_seed=3).eval()
    card = RewardCard("a", 1.0, None, network.num_parameters(), "d", network.plain(1.0), schema)
    reward = save_reward(tmp_path, card, network.plain_params(network.dump(), 1.0))
    done = export_reward(reward, "onnx", tmp_path / "out.onnx")
    assert done.difference < 1e-4
    model = onnx.load(done.path)
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    # The weights, and of the file's rest little: the card and the operators.
    assert done.num_bytes < 4.2 * network.num_parameters() + 20_000 + len(card.to_json())


def test_a_text_of_any_length_can_be_given_to_the_onnx_file(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "lstm", 0.5)
    done = export_reward(reward, "onnx", tmp_path / "out.onnx")
    module = load_reward(reward)
    for tokens in ([[5, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], [[5, 3]], [[0]], [[0, 0], [4, 0]]):
        x = torch.tensor(tokens, dtype=torch.int32)
        with torch.no_grad():
            torch.testing.assert_close(run_onnx(done.path, x), module(x), rtol=1e-4, atol=1e-5)


def layer(kind: str, **arguments: int) -> PlainLayer:
    return PlainLayer(kind, arguments)


LAYERS = {
    "average pool": layer("AvgPool2d", kernel_size=3, stride=2, padding=1),
    "average of what is there": layer(
        "AvgPool2d", kernel_size=3, padding=1, count_include_pad=False
    ),
    "average, rounded up": layer("AvgPool2d", kernel_size=2, ceil_mode=True),
    "max pool": layer("MaxPool2d", kernel_size=2, dilation=2, ceil_mode=True),
    "adaptive, windows that overlap": layer("AdaptiveAvgPool2d", output_size=3),
    "adaptive, larger than it was": layer("AdaptiveAvgPool2d", output_size=9),
    "adaptive, one": layer("AdaptiveAvgPool2d", output_size=1),
    "convolution in groups": layer(
        "Conv2d", in_channels=4, out_channels=6, kernel_size=3, groups=2, stride=2, dilation=2,
        padding=1, bias=False,
    ),
    "BatchNorm without terms": layer("BatchNorm2d", num_features=4, affine=False),
    "Linear of four axes": layer("Linear", in_features=7, out_features=3, bias=False),
    "GELU": layer("GELU"),
    "Sigmoid": layer("Sigmoid"),
    "Tanh": layer("Tanh"),
    "nothing": layer("Sequential"),
}  # fmt: skip


def weights(plain: PlainLayer) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    return {
        name: torch.rand(value.shape, generator=generator).numpy() + 0.5
        for name, value in plain.build().state_dict().items()
        if value.is_floating_point()
    }


@pytest.mark.parametrize("name", [*LAYERS])
def test_layers_that_networks_of_ones_own_may_have_are_written_too(
    tmp_path: Path, name: str
) -> None:
    module = build_plain(LAYERS[name], weights(LAYERS[name]))
    x = torch.randn(3, 4, 8, 7, generator=torch.Generator().manual_seed(2))
    (tmp_path / "x.onnx").write_bytes(onnx_model(module, x, {}))
    onnx.checker.check_model(str(tmp_path / "x.onnx"), full_check=True)
    with torch.no_grad():
        torch.testing.assert_close(
            run_onnx(tmp_path / "x.onnx", x[:2]), module(x[:2]), rtol=1e-4, atol=1e-5
        )


def test_an_embedding_alone_keeps_the_length_of_its_texts(tmp_path: Path) -> None:
    children = (
        ("e", layer("Embedding", num_embeddings=9, embedding_dim=2)),
        ("f", layer("Flatten")),
        ("l", layer("Linear", in_features=10, out_features=3)),
    )
    plain = PlainLayer("Sequential", children=children)
    schema = Schema.texts(5, 7, 3)
    card = RewardCard("a", 1.0, None, 51, "d", plain, schema)
    reward = save_reward(tmp_path, card, weights(plain))
    done = export_reward(reward, "onnx", tmp_path / "x.onnx")
    shape = onnx.load(done.path).graph.input[0].type.tensor_type.shape
    assert [d.dim_param or d.dim_value for d in shape.dim] == ["batch", 5]


@pytest.mark.parametrize(
    "plain",
    [
        layer("Flatten", start_dim=2),
        layer("AvgPool2d", kernel_size=2, divisor_override=3),
        layer("BatchNorm2d", num_features=4, track_running_stats=False),
    ],
)
def test_a_layer_without_a_counterpart_is_named(plain: PlainLayer) -> None:
    with pytest.raises(ValueError, match=f"{plain.kind.removesuffix('2d')}.* cannot be written"):
        onnx_model(build_plain(plain, weights(plain)), torch.zeros(2, 4, 8, 8), {})


def test_an_lstm_of_two_layers_is_refused(tmp_path: Path) -> None:
    children = (
        ("embedding", layer("Embedding", num_embeddings=9, embedding_dim=2)),
        ("lstm", layer("LSTM", input_size=2, hidden_size=3, num_layers=2, batch_first=True)),
    )
    plain = PlainLayer("MeanState", children=children)
    card = RewardCard("a", 1.0, None, 51, "d", plain, Schema.texts(5, 7, 3))
    reward = save_reward(tmp_path, card, weights(plain))
    with pytest.raises(ExportError, match="cannot be exported to onnx: an LSTM of more than one"):
        export_reward(reward, "onnx", tmp_path / "x.onnx")


def test_the_card_goes_along_in_every_format(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    card = load_card(reward)
    paths = {kind: export_reward(reward, kind, tmp_path / kind).path for kind in FORMATS}
    notes = {prop.key: prop.value for prop in onnx.load(paths["onnx"]).metadata_props}
    assert RewardCard.from_json(notes["card.json"]) == card
    files = {"card.json": ""}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deprecated")
        torch.jit.load(str(paths["torchscript"]), _extra_files=files)  # type: ignore[no-untyped-call]  # torch's
    assert RewardCard.from_json(str(bytes(files["card.json"]), "utf-8")) == card  # type: ignore[arg-type]  # torch turns it into bytes
    packed = load_card(paths["safetensors"])
    assert replace(packed, sha256=card.sha256) == card
    # A packed reward is a reward: it can be exported again.
    again = export_reward(paths["safetensors"], "onnx", tmp_path / "again")
    assert onnx.load(again.path).graph == onnx.load(paths["onnx"]).graph


def test_a_packed_reward_that_was_damaged_is_refused(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    whole = export_reward(reward, "safetensors", tmp_path / "x").path.read_bytes()
    (tmp_path / "short").write_bytes(whole[:-4])
    (tmp_path / "flipped").write_bytes(whole[:-4] + b"abcd")
    (tmp_path / "none").write_bytes(b"")
    (tmp_path / "plain").write_bytes((reward / "model.safetensors").read_bytes())
    for name, says in (
        ("short", "is neither the folder of a reward nor"),
        ("flipped", "is not the file that its card is of"),
        ("none", "is neither the folder of a reward nor"),
        ("plain", "is neither the folder of a reward nor"),
    ):
        with pytest.raises(RewardError, match=says):
            load_reward(tmp_path / name)


def test_other_logits_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    good = FORMATS["onnx"]

    def wrong(factor: float) -> Any:
        return replace(good, read=lambda path: lambda x: good.read(path)(x) * factor)

    for factor in (1.01, float("nan")):
        monkeypatch.setattr("aequa_flwr.exporting.formats.FORMATS", {"onnx": wrong(factor)})
        with pytest.raises(ExportError, match="gives other logits, by up to"):
            export_reward(reward, "onnx", tmp_path / "x.onnx")
    cut = replace(good, read=lambda path: lambda x: good.read(path)(x)[:, :2])
    monkeypatch.setattr("aequa_flwr.exporting.formats.FORMATS", {"onnx": cut})
    with pytest.raises(ExportError, match=r"gives \(1, 2\) logits instead of \(1, 10\)"):
        export_reward(reward, "onnx", tmp_path / "x.onnx")

    def broken(_path: Path) -> Any:
        raise RuntimeError("no such\noperator")

    monkeypatch.setattr(
        "aequa_flwr.exporting.formats.FORMATS", {"onnx": replace(good, read=broken)}
    )
    with pytest.raises(ExportError, match=r"cannot be run \(RuntimeError: no such operator\)"):
        export_reward(reward, "onnx", tmp_path / "x.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["hospital-a"]


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
                  "10 words are known", "0, 1, 2, 3, 4", "MeanState"):  # fmt: skip
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
    assert "nowhere is not a folder; make it, or choose another --output" in err


def test_a_card_cannot_choose_another_folder_to_write_to(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    card = json.loads((reward / "card.json").read_text(encoding="utf-8"))
    card["participant"] = "../../elsewhere"
    (reward / "card.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(RewardError, match="cannot be a folder name"):
        export_reward(reward, "onnx")


def test_a_card_whose_example_does_not_fit_is_refused(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    card = json.loads((reward / "card.json").read_text(encoding="utf-8"))
    for shape, says in (
        ([3, 8, 8], "does not run on examples of its card's shape"),
        ([1, 10**6, 10**6], "is not that of an example"),
    ):
        card["schema"]["shape"] = shape
        (reward / "card.json").write_text(json.dumps(card), encoding="utf-8")
        with pytest.raises(ExportError, match=says):
            export_reward(reward, "torchscript", tmp_path / "x")


def test_without_its_packages_the_command_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    for package in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    code, _, err = command(capsys, "export", reward, "--to", "onnx")
    assert code == 1
    assert "needs onnx and onnxruntime; run `pip install onnx onnxruntime`" in err


def test_a_layer_that_is_not_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="the layer Bilinear cannot be written"):
        onnx_model(nn.Bilinear(2, 2, 2), torch.zeros(1, 2), {})
