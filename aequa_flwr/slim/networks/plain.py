"""Plain torch layers described as data: what a reward consists of and its card lists.

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
    """The sum of two branches; an empty shortcut is the identity."""

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
        """Return the mean state of each text, without its padding."""
        lengths = (tokens != 0).sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mean: Tensor = states.sum(dim=1) / lengths[:, None].to(states)
        return mean


# A card can name only these. It is untrusted input: with `getattr(nn, name)` it could build
# anything.
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
# torch expects this beside BatchNorm's statistics and uses it only in training.
_COUNTER = ".num_batches_tracked"


@dataclass(frozen=True)
class PlainLayer:
    """The name of a torch.nn class, its integer or boolean arguments, and the layers inside it."""

    kind: str
    arguments: Mapping[str, int] = field(default_factory=dict)
    children: tuple[tuple[str, "PlainLayer"], ...] = ()

    def build(self) -> nn.Module:
        """Return the torch layer. Raises ValueError for an unknown kind or a wrong argument."""
        if self.kind not in _KINDS:
            raise ValueError(f"unknown layer {self.kind!r}; use {', '.join(sorted(_KINDS))}")
        children = OrderedDict((name, layer.build()) for name, layer in self.children)
        try:
            if self.kind == "Sequential":
                return nn.Sequential(children)
            return _KINDS[self.kind](**self.arguments, **children)
        except (TypeError, ValueError, RuntimeError, KeyError) as error:
            raise ValueError(f"{self.kind} cannot be built: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        content: dict[str, Any] = {"kind": self.kind}
        if self.arguments:
            content["arguments"] = dict(self.arguments)
        if self.children:
            content["layers"] = [{"name": name, **layer.to_json()} for name, layer in self.children]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the layer that ``to_json`` described.

        Raises ValueError, KeyError, TypeError or AttributeError for anything else.
        """
        children = tuple(
            (str(child["name"]), cls.from_json(child)) for child in content.get("layers", ())
        )
        kind, arguments = content["kind"], dict(content.get("arguments", {}))
        if not isinstance(kind, str) or not all(isinstance(a, int) for a in arguments.values()):
            raise TypeError("a layer is a name and whole numbers")
        return cls(kind, arguments, children)


def build_plain(layer: PlainLayer, params: Params) -> nn.Module:
    """Return the module that ``layer`` describes, holding ``params``, ready for inference.

    Raises ValueError if the tensors do not fit the layers.
    """
    # Without memory: a card may claim any size, but only that of its tensors is ever needed.
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
