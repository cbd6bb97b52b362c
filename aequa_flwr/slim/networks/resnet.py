"""ResNet-18 for 32x32 images, with switchable BatchNorm."""

from aequa_flwr.data import Schema, num_outputs
from aequa_flwr.slim.networks.cnn import image_shape
from aequa_flwr.slim.networks.layers import (
    Channelwise,
    SlimBatchNorm2d,
    SlimConv2d,
    SlimLayer,
    SlimLinear,
    SlimResidual,
)
from aequa_flwr.slim.networks.network import SlimNetwork

# (filters, stride of the first block) of each stage; a stage has two blocks.
_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def resnet18(schema: Schema) -> SlimNetwork:
    """Build ResNet-18 (He et al., 2016) with the 3x3 stem that is usual for 32x32 images.

    It has 11,173,962 parameters with 10 classes, of which 9,600 are BatchNorm's affine terms. The
    paper states 10.7527 M. Its M is 2^20 (see large_cnn), so that is 11.275 million. With the
    affine terms of the paper's 16 levels, ours has 11,260,602. The missing 14,400 are three vectors
    of all 4,800 BatchNorm channels, which the paper does not explain.
    """
    in_channels, _, _ = image_shape("resnet18", schema, least=8)
    layers: dict[str, SlimLayer] = {
        "conv1": _conv(in_channels, _STAGES[0][0], 1, slim_in=False),
        "bn1": SlimBatchNorm2d(_STAGES[0][0]),
        "relu1": Channelwise("ReLU"),
    }
    before = _STAGES[0][0]
    for stage, (filters, stride) in enumerate(_STAGES, start=1):
        for block in (1, 2):
            name = f"stage{stage}_block{block}"
            layers[name] = _block(before, filters, stride if block == 1 else 1)
            layers[f"{name}_relu"] = Channelwise("ReLU")
            before = filters
    layers["pool"] = Channelwise("AdaptiveAvgPool2d", output_size=1)
    layers["flatten"] = Channelwise("Flatten")
    layers["fc"] = SlimLinear(before, num_outputs(schema), slim_out=False)
    return SlimNetwork(layers)


def _block(in_channels: int, filters: int, stride: int) -> SlimResidual:
    main = SlimNetwork(
        {
            "conv1": _conv(in_channels, filters, stride),
            "bn1": SlimBatchNorm2d(filters),
            "relu": Channelwise("ReLU"),
            "conv2": _conv(filters, filters, 1),
            "bn2": SlimBatchNorm2d(filters),
        }
    )
    if stride == 1 and in_channels == filters:
        return SlimResidual(main, SlimNetwork({}))
    projection = SlimConv2d(in_channels, filters, 1, stride=stride, bias=False)
    return SlimResidual(main, SlimNetwork({"conv": projection, "bn": SlimBatchNorm2d(filters)}))


def _conv(in_channels: int, filters: int, stride: int, *, slim_in: bool = True) -> SlimConv2d:
    # BatchNorm follows and has its own offset, so there is no bias.
    return SlimConv2d(
        in_channels, filters, 3, slim_in=slim_in, stride=stride, padding=1, bias=False
    )
