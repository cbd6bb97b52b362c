"""Convolutional networks without BatchNorm: the paper's for MNIST, SVHN and FEMNIST."""

from aequa_flwr.data import Schema, num_outputs
from aequa_flwr.slim.networks.layers import Channelwise, SlimConv2d, SlimLayer, SlimLinear
from aequa_flwr.slim.networks.network import NetworkError, SlimNetwork

_POOL = 2


def cnn(
    schema: Schema, *, num_filters: int = 16, kernel: int = 5, num_hidden: int = 26
) -> SlimNetwork:
    """Build the paper's CNN: one convolution, two linear layers.

    The paper states 0.0606 M parameters, but neither filters nor hidden units. 16 filters of 5x5, a
    2x2 pool and 26 hidden units give 60,616 on 28x28 images with 10 classes.
    """
    in_channels, *size = image_shape("cnn", schema, least=kernel + 1)
    height, width = ((side - kernel + 1) // _POOL for side in size)
    return SlimNetwork(
        {
            "conv1": SlimConv2d(in_channels, num_filters, kernel, slim_in=False),
            # Before the ReLU: the result is the same, and the ReLU has a quarter of the work.
            "pool1": Channelwise("MaxPool2d", kernel_size=_POOL),
            "relu1": Channelwise("ReLU"),
            "flatten": Channelwise("Flatten"),
            "fc1": SlimLinear(num_filters, num_hidden, in_block=height * width),
            "relu2": Channelwise("ReLU"),
            "fc2": SlimLinear(num_hidden, num_outputs(schema), slim_out=False),
        }
    )


def small_cnn(schema: Schema) -> SlimNetwork:
    """Build the paper's CNN for 8x8 digits, with 3x3 filters: 5x5 would see most of the image.

    It has as many filters and hidden units, hence as many levels (31 from width 0.25), and 4,200
    parameters.
    """
    return cnn(schema, kernel=3)


def large_cnn(schema: Schema) -> SlimNetwork:
    """Build the paper's larger CNN (SVHN): two convolutions, two linear layers.

    The paper states 2.0566 M, but no sizes. 32 and 64 filters of 5x5 with padding, a 2x2 pool after
    each, and 512 hidden units are those of McMahan et al. (2017). On 32x32x3 images with 10 classes
    they give 2,156,490, which is 2.0566 x 2^20.
    """
    in_channels, *size = image_shape("large-cnn", schema, least=_POOL**2)
    height, width = (side // _POOL // _POOL for side in size)
    return SlimNetwork(
        {
            **_padded_block("1", in_channels, 32, slim_in=False),
            **_padded_block("2", 32, 64, slim_in=True),
            "flatten": Channelwise("Flatten"),
            "fc1": SlimLinear(64, 512, in_block=height * width),
            "relu3": Channelwise("ReLU"),
            "fc2": SlimLinear(512, num_outputs(schema), slim_out=False),
        }
    )


def femnist_cnn(schema: Schema) -> SlimNetwork:
    """Build the paper's CNN for FEMNIST: two convolutions, one linear layer.

    The paper states neither sizes nor a count. The convolutions of the larger CNN, with the classes
    right after them, give 246,590 on 28x28 images with 62 classes.
    """
    in_channels, *size = image_shape("femnist-cnn", schema, least=_POOL**2)
    height, width = (side // _POOL // _POOL for side in size)
    return SlimNetwork(
        {
            **_padded_block("1", in_channels, 32, slim_in=False),
            **_padded_block("2", 32, 64, slim_in=True),
            "flatten": Channelwise("Flatten"),
            "fc": SlimLinear(64, num_outputs(schema), in_block=height * width, slim_out=False),
        }
    )


def _padded_block(
    number: str, in_channels: int, num_filters: int, *, slim_in: bool
) -> dict[str, SlimLayer]:
    """Return a 5x5 convolution that keeps the size, a pool that halves it, and ReLU."""
    return {
        f"conv{number}": SlimConv2d(in_channels, num_filters, 5, slim_in=slim_in, padding=2),
        f"pool{number}": Channelwise("MaxPool2d", kernel_size=_POOL),
        f"relu{number}": Channelwise("ReLU"),
    }


def image_shape(network: str, schema: Schema, *, least: int) -> tuple[int, int, int]:
    """Return (channels, height, width). Raises NetworkError for other or too small examples.

    ``least`` is the smallest side of an image that the network can take.
    """
    if len(schema.shape) != 3:
        raise NetworkError(
            f"The network {network} takes images, but the examples have shape {schema.shape}; "
            "choose another with --network (mlp for tables, lstm for text)."
        )
    in_channels, height, width = schema.shape
    if min(height, width) < least:
        raise NetworkError(
            f"The network {network} takes images of at least {least}x{least}, but these are "
            f"{height}x{width}; choose another with --network."
        )
    return in_channels, height, width
