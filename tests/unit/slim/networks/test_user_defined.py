"""A user's own network: found, checked, built, or refused in a sentence."""

import sys
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.data import Schema
from aequa_flwr.options import IMPORT_PATH
from aequa_flwr.slim.networks import NetworkError, SlimNetwork, build_network

GREY = Schema.numbered("images", (1, 28, 28), 10)
OWN = '''
import torch
from torch import nn
from aequa_flwr.slim.networks import (
    Channelwise, PlainLayer, SlimBatchNorm2d, SlimConv2d, SlimLayer, SlimLinear, SlimNetwork,
    SlimResidual)

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
    assert len(network.ladder(0.25, 1.0)) == 7
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
        ("my_nets.small:not_channelwise", "'Dropout' is not channelwise; use ReLU, GELU"),
        ("my_nets.small:nothing_slim", "has nothing that shrinks with the width"),
        ("my_nets.small:descending", "widths must ascend from above 0 to 1.0"),
        ("my_nets.small:two_ladders", "BatchNorm of different widths"),
        ("my_nets.small:leaving", "cannot be built: SystemExit: 3"),
        ("my_nets.leaves:make", "cannot be imported .SystemExit: 4"),
        ("my_nets.small:undescribed", r"do not describe their tensors \(scale.scale\)"),
        (
            "my_nets.small:lying",
            "at width 0.3 the plain network of its sub-network gives different",
        ),
    ],
)
@pytest.mark.usefixtures("own_package")
def test_a_network_that_cannot_be_used_is_refused_in_a_sentence(name: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words) as error:
        build_network(name, GREY)
    assert "\n" not in str(error.value)
