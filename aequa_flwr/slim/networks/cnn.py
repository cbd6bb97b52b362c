"""The paper's CNN: one convolution, two linear layers (appendix B)."""

from aequa_flwr.slim.layers import Channelwise, SlimConv2d, SlimLinear
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.plain import PlainLayer

_POOL = 2


def cnn(
    input_shape: tuple[int, int, int],
    num_classes: int,
    *,
    num_filters: int = 16,
    kernel: int = 5,
    num_hidden: int = 26,
) -> SlimNetwork:
    """Build the CNN for images of ``input_shape`` (channels, height, width).

    The paper states 0.0606 M parameters and neither filters nor hidden units; 16 filters of
    5x5, a 2x2 pool and 26 hidden units give 60,616 on 28x28 images with 10 classes.
    """
    in_channels, height, width = input_shape
    pooled = ((height - kernel + 1) // _POOL) * ((width - kernel + 1) // _POOL)
    return SlimNetwork(
        {
            "conv1": SlimConv2d(in_channels, num_filters, kernel, slim_in=False),
            "relu1": Channelwise(PlainLayer("ReLU")),
            "pool1": Channelwise(PlainLayer("MaxPool2d", {"kernel_size": _POOL})),
            "flatten": Channelwise(PlainLayer("Flatten")),
            "fc1": SlimLinear(num_filters, num_hidden, in_block=pooled),
            "relu2": Channelwise(PlainLayer("ReLU")),
            "fc2": SlimLinear(num_hidden, num_classes, slim_out=False),
        }
    )


def small_cnn(input_shape: tuple[int, int, int], num_classes: int) -> SlimNetwork:
    """Build its small form for 8x8 digits: 3x3 filters, as 5x5 would see most of the image.

    As many filters and hidden units, hence as many levels (31 from width 0.25); 4,200
    parameters.
    """
    return cnn(input_shape, num_classes, kernel=3)
