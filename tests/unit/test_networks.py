"""The paper's networks against its counts and torch's own; a user's own network."""

import copy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from torchvision.models.resnet import BasicBlock, ResNet

from aequa_flwr.config import IMPORT_PATH
from aequa_flwr.data import Schema
from aequa_flwr.rewards import RewardCard, load_card, load_reward, save_reward
from aequa_flwr.slim import embed, extract
from aequa_flwr.slim.layers import SlimBatchNorm2d, SlimConv2d
from aequa_flwr.slim.network import NetworkError, SlimNetwork
from aequa_flwr.slim.networks import BUILDERS, build_network
from aequa_flwr.slim.plain import build_plain
from aequa_flwr.slim.recurrent import SlimLSTM
from tests.property.test_slim_laws import SCHEMAS, network_and_batch

IMAGES = Schema.numbered("images", (3, 32, 32), 10)
SST = Schema.texts(52, 18_278, 5)
GREY = Schema.numbered("images", (1, 28, 28), 10)


@pytest.mark.parametrize(
    ("name", "schema", "count"),
    [
        ("cnn", GREY, 60_616),
        ("small-cnn", Schema.numbered("images", (1, 8, 8), 10), 4_200),
        ("large-cnn", IMAGES, 2_156_490),  # the paper's 2.0566 M, where M is 2^20
        ("resnet18", IMAGES, 11_173_962),  # torchvision's 11,181,642 with a 3x3 stem
        ("femnist-cnn", Schema.numbered("images", (1, 28, 28), 62), 246_590),
        ("lstm", SST, 6_096_869),  # the paper's 6.1461 M
    ],
)
def test_counts_are_those_of_the_docstrings(name: str, schema: Schema, count: int) -> None:
    network = build_network(name, schema)
    assert network.num_parameters() == count
    assert f"{count:,}" in (BUILDERS[name].__doc__ or "")


@pytest.mark.parametrize("name", ["small-cnn", "resnet18"])  # without buffers, and with them
def test_a_network_that_was_moved_or_copied_is_loaded_and_dumped_itself(name: str) -> None:
    schema = replace(IMAGES, shape=(3, 8, 8))
    network = build_network(name, schema)
    before = network.dump()  # by now it knows where its tensors are
    assert len(network.trainable) == len(list(network.parameters()))
    copied, moved = copy.deepcopy(network), network.double()
    zeros = {key: np.zeros_like(value) for key, value in before.items()}
    for one in (copied, moved):
        one.load(zeros)
        assert not any(tensor.any() for tensor in one.state_dict().values())
        one.load(before)
        for key, tensor in one.state_dict().items():
            assert np.array_equal(tensor.numpy(), before[key])
            assert np.array_equal(one.dump()[key], before[key])
        assert all(a is b for a, b in zip(one.trainable, one.parameters(), strict=True))
    assert {tensor.dtype for tensor in moved.state_dict().values()} == {torch.float64}


def torchvision_resnet18() -> nn.Module:
    """torchvision's own, with the stem for 32x32 images."""
    model: nn.Module = ResNet(BasicBlock, [2, 2, 2, 2], num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model.eval()


def test_resnet18_is_torchvisions() -> None:
    network = build_network("resnet18", IMAGES)
    for layer in network.modules():
        if isinstance(layer, SlimBatchNorm2d):
            for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                tensor.data = torch.rand(tensor.shape) + 0.5
    ours = network.plain_params(network.dump(), 1.0)
    model = torchvision_resnet18()
    theirs = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    # Both list the same layers in the same order, but for the projection, which comes last there.
    assert sorted(v.shape for v in theirs.values()) == sorted(
        torch.Size(v.shape) for v in ours.values()
    )
    for key in theirs:
        model.state_dict()[key].copy_(torch.from_numpy(ours[their_name(key)]))
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(network.eval()(x, 1.0), model(x), rtol=1e-4, atol=1e-4)


def their_name(key: str) -> str:
    """Return our name of torchvision's ``layer2.0.downsample.1.weight``."""
    if not key.startswith("layer"):
        return key
    stage, block, part, *rest = key.split(".")
    prefix = f"stage{stage.removeprefix('layer')}_block{int(block) + 1}"
    if part == "downsample":
        return ".".join([prefix, "shortcut", ("conv", "bn")[int(rest[0])], *rest[1:]])
    return ".".join([prefix, "main", part, *rest])


@pytest.mark.parametrize("name", ["large-cnn", "resnet18"])
def test_half_the_width_is_a_quarter_of_the_inner_multiply_adds(name: str) -> None:
    """Counted by torch: all but the first layer, whose input never shrinks."""

    def inner(width: float) -> int:
        network = build_network(name, IMAGES).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network(torch.zeros(1, 3, 32, 32), width)
        with FlopCounterMode(display=False) as first, torch.no_grad():
            network.get_submodule("conv1")(torch.zeros(1, 3, 32, 32), width)
        return int(counter.get_total_flops() - first.get_total_flops())

    assert inner(0.5) / inner(1.0) == pytest.approx(0.25, abs=0.01)
    assert inner(0.25) / inner(1.0) == pytest.approx(1 / 16, abs=0.01)


@pytest.mark.parametrize("name", [*BUILDERS])
@pytest.mark.parametrize("width", [0.25, 0.7, 1.0])
def test_a_saved_reward_gives_the_slimmable_networks_logits(
    tmp_path: Path, name: str, width: float
) -> None:
    network, x = network_and_batch(name)
    sub = extract(network.dump(), network.layouts, width)
    card = RewardCard(
        participant="hospital-a",
        width=width,
        accuracy=0.9,
        num_parameters=network.num_parameters(width),
        dataset="text",
        layer=network.plain(width),
        schema=SCHEMAS[name],
    )
    path = save_reward(tmp_path, card, network.plain_params(sub, width))
    assert replace(load_card(path), sha256="") == card
    module = load_reward(path)
    assert sum(p.numel() for p in module.parameters()) == card.num_parameters
    torch.testing.assert_close(module(x), network(x, width), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "schema", "words"),
    [
        ("cnn", SCHEMAS["lstm"], "takes images, and the examples have shape"),
        ("resnet18", Schema.numbered("images", (3, 4, 4), 2), "of at least 8x8, and these are 4x4"),
        ("lstm", GREY, "takes text, and the examples are images"),
        ("mlp", SCHEMAS["lstm"], "takes numbers, not text"),
        ("vgg", GREY, "is not known; use one of cnn,"),
    ],
)
def test_a_network_that_does_not_fit_the_data_says_so(
    name: str, schema: Schema, words: str
) -> None:
    with pytest.raises(NetworkError, match=words):
        build_network(name, schema)


OWN = '''
import torch
from torch import nn
from aequa_flwr.slim.layers import (
    Channelwise, SlimBatchNorm2d, SlimConv2d, SlimLayer, SlimLinear, SlimResidual)
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.plain import PlainLayer

def make(schema):
    channels, height, width = schema.shape
    return SlimNetwork({
        "conv": SlimConv2d(channels, 8, 3, slim_in=False, padding=1),
        "act": Channelwise("GELU"),
        "pool": Channelwise("AdaptiveAvgPool2d", output_size=2),
        "flatten": Channelwise("Flatten"),
        "fc": SlimLinear(8, schema.num_classes, in_block=4, slim_out=False),
    })

def plain_torch(schema):
    return nn.Linear(3, 4)

def sliced_classes(schema):
    return SlimNetwork({"flatten": Channelwise("Flatten"),
                        "fc": SlimLinear(784, schema.num_classes, slim_in=False)})

def wrong_block(schema):
    return SlimNetwork({
        "conv": SlimConv2d(1, 8, 3, slim_in=False),
        "flatten": Channelwise("Flatten"),
        "fc": SlimLinear(8 * 26 * 26, schema.num_classes, slim_out=False),
    })

class Scale(SlimLayer):
    """Forgets to say what it holds."""
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))
    def forward(self, x, width):
        return x * self.scale
    @property
    def layouts(self):
        return {}
    def plain(self, width):
        return PlainLayer("ReLU")

def undescribed(schema):
    return SlimNetwork({**make(schema).parts, "scale": Scale()})

class Lies(Scale):
    """Is another layer than it says."""
    def __init__(self):
        SlimLayer.__init__(self)
    def forward(self, x, width):
        return x * width

def lying(schema):
    return SlimNetwork({**make(schema).parts, "lies": Lies()})

def plain_inside(schema):
    return SlimNetwork({"r": nn.ReLU()})

def plain_conv(schema):
    return SlimNetwork({"c": nn.Conv2d(1, 2, 3)})

def half_residual(schema):
    return SlimNetwork({"r": SlimResidual(SlimNetwork({}), nn.Identity())})

def not_channelwise(schema):
    return SlimNetwork({"d": Channelwise("Dropout")})

def nothing_slim(schema):
    return SlimNetwork({"f": Channelwise("Flatten"),
                        "fc": SlimLinear(784, schema.num_classes, slim_in=False, slim_out=False)})

def descending(schema):
    return SlimNetwork({"bn": SlimBatchNorm2d(4, (1.0, 0.5))})

def two_ladders(schema):
    return SlimNetwork({
        "conv": SlimConv2d(1, 8, 3, slim_in=False),
        "bn1": SlimBatchNorm2d(8),
        "bn2": SlimBatchNorm2d(8, (0.5, 1.0)),
        "pool": Channelwise("AdaptiveAvgPool2d", output_size=1),
        "flatten": Channelwise("Flatten"),
        "fc": SlimLinear(8, schema.num_classes, slim_out=False),
    })

def leaving(schema):
    raise SystemExit(3)

def crashing(schema):
    raise ZeroDivisionError("no luck")

number = 3
'''


@pytest.fixture
def own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that lies where the run was started, and is not installed."""
    (tmp_path / "my_nets").mkdir()
    (tmp_path / "my_nets" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "my_nets" / "small.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "my_nets" / "broken.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "my_nets" / "leaves.py").write_text("import sys\nsys.exit(4)\n")
    monkeypatch.setenv(IMPORT_PATH, str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    for module in [name for name in sys.modules if name.split(".")[0] == "my_nets"]:
        monkeypatch.delitem(sys.modules, module)
    return "my_nets.small"


def test_a_users_own_network_is_found_checked_and_built(own_package: str) -> None:
    network = build_network(f"{own_package}:make", GREY, init_seed=3)
    assert isinstance(network, SlimNetwork)
    assert len(network.levels(0.25, 1.0)) == 7
    again = build_network(f"{own_package}:make", GREY, init_seed=3)
    assert all(np.array_equal(network.dump()[k], v) for k, v in again.dump().items())
    assert network.training


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my_nets.small:missing", "cannot be imported .*has no attribute 'missing'"),
        ("my_nets.broken:make", "cannot be imported .*nowhere_to_be_found"),
        ("my_nets.nowhere:make", "cannot be imported .*No module named"),
        (":make", "cannot be imported"),
        ("my_nets.small:number", "is not a function"),
        ("my_nets.small:crashing", "cannot be built: ZeroDivisionError: no luck"),
        ("my_nets.small:plain_torch", "returned Linear; build a SlimNetwork"),
        ("my_nets.small:sliced_classes", r"returns shape \(3, 3\) for 3 examples"),
        ("my_nets.small:wrong_block", "cannot be slimmed .layer fc at width 0.3; look at"),
        ("my_nets.small:plain_inside", 'layer r is a plain ReLU; use Channelwise."ReLU"'),
        ("my_nets.small:plain_conv", "layer c is a plain Conv2d; use slim layers"),
        ("my_nets.small:half_residual", "layer shortcut is a plain Identity"),
        ("my_nets.small:not_channelwise", "'Dropout' is not channelwise; there are ReLU, GELU"),
        ("my_nets.small:nothing_slim", "has nothing that shrinks with the width"),
        ("my_nets.small:descending", "a ladder must ascend from above 0 to 1.0"),
        ("my_nets.small:two_ladders", "BatchNorm of different ladders"),
        ("my_nets.small:leaving", "cannot be built: SystemExit: 3"),
        ("my_nets.leaves:make", "cannot be imported .SystemExit: 4"),
        ("my_nets.small:undescribed", r"do not describe their tensors \(scale.scale\)"),
        ("my_nets.small:lying", "at width 0.3 the ordinary network of its sub-network gives other"),
    ],
)
@pytest.mark.usefixtures("own_package")
def test_a_network_that_cannot_be_used_is_refused_in_a_sentence(name: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words) as error:
        build_network(name, GREY)
    assert "\n" not in str(error.value)


def test_a_text_is_read_to_its_end_whatever_the_padding() -> None:
    schema = replace(SCHEMAS["lstm"], shape=(20,))
    network = build_network("lstm", schema).eval()
    short = torch.tensor([[3, 4, 5], [6, 0, 0]])
    longer = torch.cat([short, torch.zeros(2, 17, dtype=torch.int64)], dim=1)
    torch.testing.assert_close(network(short, 0.6), network(longer, 0.6))
    alone = network(short[1:], 0.6)
    torch.testing.assert_close(network(short, 0.6)[1:], alone)


@pytest.mark.parametrize("width", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("lengths", [(9, 1, 4, 0, 9, 3), (5, 5, 5), (1,), (0, 0)])
def test_an_lstms_gradients_are_those_of_torchs_own(lengths: tuple[int, ...], width: float) -> None:
    layer = SlimLSTM(20, 5, 8)
    tokens = torch.arange(len(lengths) * 10).reshape(-1, 10) % 19 + 1
    for row, length in enumerate(lengths):
        tokens[row, length:] = 0
    full = {key: value.numpy() for key, value in layer.state_dict().items()}
    sub = extract(full, layer.layouts, width)
    plain = build_plain(layer.plain(width), layer.plain_params(sub, width))
    ours, torchs = layer(tokens, width), plain(tokens)
    torch.testing.assert_close(ours, torchs)
    for states in (ours, torchs):
        torch.sin(states).sum().backward()  # type: ignore[no-untyped-call]
    gradients = {key: tensor.grad for key, tensor in layer.named_parameters()}
    found = {key: grad.numpy() for key, grad in gradients.items() if grad is not None}
    expected = {key: tensor.grad for key, tensor in plain.named_parameters()}
    assert found.keys() == full.keys()
    for key, grad in layer.plain_params(extract(found, layer.layouts, width), width).items():
        torch.testing.assert_close(torch.from_numpy(grad), expected[key])
    # Nothing of what is wider moves.
    still = {key: np.zeros_like(grad) for key, grad in found.items()}
    moved = embed(extract(found, layer.layouts, width), layer.layouts, width, still)
    assert all(np.array_equal(moved[key], found[key]) for key in found)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(1, 1, 0), (1, 2, 0), (1, 3, 1), (2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 1, 0), (5, 2, 2)],
)
@pytest.mark.parametrize("channels", [1, 2, 3, 16])
def test_a_convolutions_gradients_are_those_in_double_precision(
    channels: int, kernel: int, stride: int, padding: int
) -> None:
    # Torch takes other ways for float64, of which the fast ones for float32 must not differ.
    layer = SlimConv2d(channels, 4, kernel, stride=stride, padding=padding, bias=False)
    x = torch.randn(6, channels, 9, 9, generator=torch.Generator().manual_seed(1))
    found: list[list[torch.Tensor]] = []
    for way in ("alone", "apart", "float64"):
        kind = torch.float64 if way == "float64" else torch.float32
        inputs = x.to(kind, memory_format=torch.channels_last, copy=True).requires_grad_()
        weight = layer.weight
        if way == "alone":
            output = layer(inputs, 1.0)
        elif way == "apart":
            (output,) = layer.forward_apart([inputs], [1.0])
        else:
            weight = nn.Parameter(weight.detach().to(kind).contiguous())
            output = F.conv2d(inputs.contiguous(), weight, None, stride, padding)
        weight.grad = None
        torch.sin(output).sum().backward()  # type: ignore[no-untyped-call]
        assert inputs.grad is not None
        assert weight.grad is not None
        found.append([output.detach(), inputs.grad, weight.grad])
    for values in zip(*found, strict=True):
        for fast in values[:2]:
            torch.testing.assert_close(fast.double(), values[2], rtol=1e-4, atol=1e-4)
