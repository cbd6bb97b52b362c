"""Sources: one file per family of data sets; each source finds its files and decodes them."""

from collections.abc import Mapping

from aequa_flwr.data.sources.arrays import ARRAYS
from aequa_flwr.data.sources.digits import DIGITS
from aequa_flwr.data.sources.femnist import FEMNIST
from aequa_flwr.data.sources.images import IMAGES
from aequa_flwr.data.sources.source import Files, MissingError, Source, check_examples
from aequa_flwr.data.sources.sst import SST
from aequa_flwr.data.sources.text import TEXT
from aequa_flwr.data.sources.vision import CIFAR10, CIFAR100, FASHION_MNIST, MNIST, SVHN

# The user's own data, which a deployed participant may hold as well.
USER_FILES: tuple[str, ...] = (IMAGES.name, ARRAYS.name, TEXT.name)
SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        DIGITS,
        MNIST,
        FASHION_MNIST,
        SVHN,
        CIFAR10,
        CIFAR100,
        SST,
        FEMNIST,
        IMAGES,
        ARRAYS,
        TEXT,
    )
}

__all__ = ["SOURCES", "USER_FILES", "Files", "MissingError", "Source", "check_examples"]
