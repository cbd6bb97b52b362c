"""The usual CIFAR augmentation: random crops of padded images, half of them mirrored."""

import numpy as np
import torch
from torch import Tensor

from aequa_flwr.data import Schema
from aequa_flwr.errors import UserError

_PADDING = 4


class AugmentationError(UserError):
    """An augmentation of examples that are not images."""


def check_augmentation(name: str, schema: Schema) -> None:
    """Raise AugmentationError unless ``name`` can be applied to examples of ``schema``."""
    if name != "none" and len(schema.shape) != 3:
        raise AugmentationError(
            f"augmentation = {name!r} is for images, but the examples have shape {schema.shape}; "
            "use none."
        )


def crop_and_flip(x: Tensor, black: Tensor, rng: np.random.Generator) -> Tensor:
    """Return images (n, channels, height, width) shifted by up to 4 pixels and mirrored.

    The border is filled with ``black`` (channels, 1, 1), a normalised black pixel. All draws come
    from ``rng``, whatever the device, so they depend on the seed alone.
    """
    count, channels, height, width = x.shape
    padded = black.expand(count, channels, height + 2 * _PADDING, width + 2 * _PADDING).clone()
    padded[:, :, _PADDING:-_PADDING, _PADDING:-_PADDING] = x
    top, left = rng.integers(0, 2 * _PADDING + 1, size=(2, count))
    mirrored = rng.integers(0, 2, size=count) == 1
    rows = top[:, None] + np.arange(height)
    columns = left[:, None] + np.arange(width)
    columns = np.where(mirrored[:, None], columns[:, ::-1], columns)
    which = torch.arange(count, device=x.device)[:, None, None]
    at_row = torch.from_numpy(rows).to(x.device)[:, :, None]
    at_column = torch.from_numpy(columns).to(x.device)[:, None, :]
    chosen = padded.permute(0, 2, 3, 1)[which, at_row, at_column]
    return chosen.permute(0, 3, 1, 2).contiguous()
