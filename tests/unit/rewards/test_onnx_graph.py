"""Every layer that a reward can have, written as ONNX."""

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

from aequa_flwr.data import Schema
from aequa_flwr.rewards import RewardCard, export_reward, load_reward, save_reward
from aequa_flwr.rewards.formats import ExportError
from aequa_flwr.rewards.onnx_graph import onnx_model
from aequa_flwr.slim.networks import BUILDERS, HOMES, PlainLayer, build_network, build_plain
from tests.unit.rewards.saved import make_reward, run_onnx


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


def test_a_layer_that_is_not_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="the layer Bilinear cannot be written"):
        onnx_model(nn.Bilinear(2, 2, 2), torch.zeros(1, 2), {})
