"""Ordinary torch layers described as data: what a reward is made of and its card says.

A description is JSON, so that a reward is rebuilt without unpickling anything.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from aequa_flwr.slim import Params


class Residual(nn.Module):
    """The sum of two branches; an empty shortcut is the input itself."""

    def __init__(self, main: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.main, self.shortcut = main, shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return main(x) + shortcut(x)."""
        total: Tensor = self.main(x) + self.shortcut(x)
        return total


class MeanState(nn.Module):
    """An embedding and an LSTM: tokens (n, length) to the mean of each text's states (n, h).

    Id 0 pads the end of a text; a text of nothing else is read as one padding token.
    """

    def __init__(self, embedding: nn.Module, lstm: nn.Module) -> None:
        super().__init__()
        self.embedding, self.lstm = embedding, lstm

    def forward(self, tokens: Tensor) -> Tensor:
        """Read each text to its end."""
        lengths = (tokens != 0).sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mean: Tensor = states.sum(dim=1) / lengths[:, None].to(states)
        return mean


# Only these can be named by a card. A card is input from outside: `getattr(nn, anything)` on
# it would be an open door.
_KINDS: Mapping[str, type[nn.Module]] = {
    "AdaptiveAvgPool2d": nn.AdaptiveAvgPool2d,
    "AvgPool2d": nn.AvgPool2d,
    "BatchNorm2d": nn.BatchNorm2d,
    "Conv2d": nn.Conv2d,
    "Embedding": nn.Embedding,
    "Flatten": nn.Flatten,
    "GELU": nn.GELU,
    "LSTM": nn.LSTM,
    "Linear": nn.Linear,
    "MaxPool2d": nn.MaxPool2d,
    "MeanState": MeanState,
    "ReLU": nn.ReLU,
    "Residual": Residual,
    "Sequential": nn.Sequential,
    "Sigmoid": nn.Sigmoid,
    "Tanh": nn.Tanh,
}
# torch wants this beside BatchNorm's statistics and uses it only in training.
_COUNTER = ".num_batches_tracked"


@dataclass(frozen=True)
class PlainLayer:
    """The name of a torch.nn class, its whole or boolean arguments, and the layers inside it."""

    kind: str
    arguments: Mapping[str, int] = field(default_factory=dict)
    children: tuple[tuple[str, "PlainLayer"], ...] = ()

    def build(self) -> nn.Module:
        """Return the layer; raises ValueError for a kind or argument that is not ours."""
        if self.kind not in _KINDS:
            raise ValueError(f"unknown layer {self.kind!r}; known are {', '.join(sorted(_KINDS))}")
        children = OrderedDict((name, layer.build()) for name, layer in self.children)
        try:
            if self.kind == "Sequential":
                return nn.Sequential(children)
            return _KINDS[self.kind](**self.arguments, **children)
        except (TypeError, ValueError, RuntimeError, KeyError) as error:
            raise ValueError(f"{self.kind} cannot be built: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        content: dict[str, Any] = {"kind": self.kind}
        if self.arguments:
            content["arguments"] = dict(self.arguments)
        if self.children:
            content["layers"] = [{"name": name, **layer.to_json()} for name, layer in self.children]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read it back; raises ValueError, KeyError, TypeError or AttributeError for no layer."""
        children = tuple(
            (str(child["name"]), cls.from_json(child)) for child in content.get("layers", ())
        )
        kind, arguments = content["kind"], dict(content.get("arguments", {}))
        if not isinstance(kind, str) or not all(isinstance(a, int) for a in arguments.values()):
            raise TypeError("a layer is a name and whole numbers")
        return cls(kind, arguments, children)


def build_plain(layer: PlainLayer, params: Params) -> nn.Module:
    """Return the module that ``layer`` describes, holding ``params``, ready for inference.

    Raises ValueError where the tensors do not fit the layers.
    """
    # Without memory: a card may claim any size, and only that of its tensors is ever needed.
    with torch.device("meta"):
        module = layer.build()
    state = {name: torch.from_numpy(value.copy()) for name, value in params.items()}
    for name, value in module.state_dict().items():
        if name.endswith(_COUNTER):
            state.setdefault(name, torch.zeros(value.shape, dtype=value.dtype))
    try:
        module.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ValueError(f"the tensors do not fit the layers: {error}") from error
    return module.eval()
