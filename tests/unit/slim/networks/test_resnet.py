import torch
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks import SlimBatchNorm2d, build_network

IMAGES = Schema.numbered("images", (3, 32, 32), 10)


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
