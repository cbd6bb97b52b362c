"""Ordinary torch layers described as data: what a reward is made of and its card says.

A description is JSON, so that a reward is rebuilt without unpickling anything and without a
class of ours inside it.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from aequa_flwr.slim.subnet import Params

# Only these can be named by a card. A card is input from outside: `getattr(nn, anything)` on
# it would be an open door.
_KINDS: Mapping[str, type[nn.Module]] = {
    "Conv2d": nn.Conv2d,
    "Flatten": nn.Flatten,
    "Linear": nn.Linear,
    "MaxPool2d": nn.MaxPool2d,
    "ReLU": nn.ReLU,
}


@dataclass(frozen=True)
class PlainLayer:
    """The name of a torch.nn class and its integer arguments."""

    kind: str
    arguments: Mapping[str, int] = field(default_factory=dict)

    def build(self) -> nn.Module:
        """Return the layer; raises ValueError for a kind or argument that is not ours."""
        if self.kind not in _KINDS:
            raise ValueError(f"unknown layer {self.kind!r}; known are {', '.join(sorted(_KINDS))}")
        try:
            return _KINDS[self.kind](**self.arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{self.kind} cannot be built: {error}") from error


def build_plain(layers: Sequence[tuple[str, PlainLayer]], params: Params) -> nn.Module:
    """Return the nn.Sequential of named ``layers``, holding ``params``, ready for inference.

    Raises ValueError where the tensors do not fit the layers.
    """
    module = nn.Sequential(OrderedDict((name, layer.build()) for name, layer in layers))
    state = {name: torch.from_numpy(value.copy()) for name, value in params.items()}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"the tensors do not fit the layers: {error}") from error
    return module.eval()
