"""Models between what was received and what participants made of it, measured many at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from aequa_flwr.data import Indices
from aequa_flwr.slim import NDArray, Params
from aequa_flwr.slim.networks import CHANNELWISE, PlainLayer, SlimNetwork
from aequa_flwr.training.compute import Compute, Resident

Floats = npt.NDArray[np.float64]

# The layers with weights of which many models' can stand side by side in one wider layer, and
# the argument that grows.
_GROWS = {"Conv2d": "out_channels", "Linear": "out_features", "BatchNorm2d": "num_features"}
_MOST_TOGETHER = 8
_LEAST_BATCH, _MOST_BATCH = 64, 2048
# Bytes of one layer's activations: what stays in a processor's cache, and what fits elsewhere.
_CACHE, _MEMORY = 2**23, 2**28
# Parameters that are added up at a time: the LSTM's 5.5 million at once take 7 times as long.
_BLOCK = 2**17


class Mixtures:
    """Sub-models of one width that are weighted sums of updates away from a common one.

    ``received`` are sub_params of ``width``, ``updates`` maps the same names to what n
    participants added, (n, *shape). Measured on ``data``, or on a ``subset`` of ``most_examples``
    (0: all). The network is only asked for its form; what it holds stays as it is.
    """

    def __init__(
        self,
        network: SlimNetwork,
        width: float,
        received: Params,
        updates: Mapping[str, NDArray],
        data: Resident,
        compute: Compute,
        *,
        most_examples: int = 0,
    ) -> None:
        self._data, self._compute = subset(data, most_examples), compute
        self._labels = self._data.labels.cpu()
        plain_received = network.plain_params(received, width)
        self._received = _flat(plain_received, plain_received).to(compute.device)
        count = len(next(iter(updates.values())))
        self._updates = torch.empty(count, len(self._received), device=compute.device)
        for row, flat in enumerate(self._updates):
            update = {name: stacked[row] for name, stacked in updates.items()}
            flat.copy_(_flat(network.plain_params(update, width), plain_received))
        self._mixture = torch.empty_like(self._received)
        example, _ = self._data.batch(slice(0, 1))
        self._models = _SideBySide(network.plain(width), [*plain_received], example, compute)

    @torch.inference_mode()
    def score(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the task's scores in [0, 1] and mean losses, (K,) each.

        Model k is what was received plus the updates weighted by row k of ``weights`` (K, n):
        zeros are the received model, a single 1 is the model of one participant. With weights
        that are not negative and add up to at most 1, BatchNorm's variances stay positive.
        A row's result does not depend on the other rows.
        """
        task = self._data.task
        scores: list[float] = []
        losses: list[float] = []
        step = self._models.count
        for start in range(0, len(weights), step):
            chunk = self._logits(weights[start : start + step])
            marks = torch.stack([task.mark(outputs, self._labels) for outputs in chunk])
            scores += task.score(marks, self._labels)
            losses += [float(task.loss(outputs.double(), self._labels)) for outputs in chunk]
        return np.array(scores), np.array(losses)

    def _logits(self, weights: Floats) -> list[Tensor]:
        """Return the logits (examples, classes) of some of the models, on the CPU."""
        for place, row in enumerate(weights):
            self._mix(row)
            self._models.load(place, self._mixture)
        self._models.join()
        batches: list[list[Tensor]] = []
        for start in range(0, len(self._data), self._models.batch):
            x, _ = self._data.batch(slice(start, start + self._models.batch))
            with self._compute.autocast():
                batches.append(self._models.logits(x, len(weights)))
        return [torch.cat(parts).cpu() for parts in zip(*batches, strict=True)]

    def _mix(self, row: Floats) -> None:
        """Add up one model; who has no weight costs nothing and cannot spoil it.

        In float64, and then rounded: the order of the participants is nearly always forgotten.
        """
        # MPS has no float64.
        exact = torch.float32 if self._compute.device.type == "mps" else torch.float64
        pairs = zip(row.tolist(), self._updates, strict=True)
        members = [(weight, update) for weight, update in pairs if weight]
        for start in range(0, len(self._received), _BLOCK):
            block = slice(start, start + _BLOCK)
            total = self._received[block].to(exact, copy=True)
            for weight, update in members:
                total.add_(update[block], alpha=weight)
            self._mixture[block] = total


class _SideBySide:
    """Ordinary networks of one form that read the same inputs at the same time.

    Up to the second layer with weights they are one network with as many times the channels;
    from there each runs alone. The paper's CNN at width 0.25 takes 0.27 of the time of a slimmable
    network that is loaded with one model after the other, ordinary networks in a row take 0.94
    and torch.func's vmap 0.75: it pulls the channels of the models apart before it pools them.
    Later convolutions are no faster in groups than apart. (One core, 2,000 images.)
    """

    def __init__(
        self, plain: PlainLayer, names: Sequence[str], example: Tensor, compute: Compute
    ) -> None:
        """``names`` are its tensors in the order of load; ``example`` is a batch of one."""
        on_cpu = compute.device.type == "cpu"
        # What makes wide layers fast on a processor; elsewhere it was not measured.
        self._layout = torch.channels_last if on_cpu else torch.contiguous_format
        head, first = _head(plain), _build(plain, compute.device, self._layout)
        room = (_CACHE if on_cpu else _MEMORY) // (4 * _largest(first, example))
        # Layers side by side are not worth it where they leave tiny batches to those behind them.
        count = max(1, min(_MOST_TOGETHER, room // _LEAST_BATCH)) if head else 1
        self.batch = max(1, min(_MOST_BATCH, room // count))
        wide = PlainLayer(
            "Sequential", children=tuple((name, _grown(x, count)) for name, x in head)
        )
        self._head = _build(wide, compute.device, self._layout)
        others = (_build(plain, compute.device, self._layout) for _ in range(count - 1))
        models = [first, *others]
        self._tails = [nn.Sequential(*list(model.children())[len(head) :]) for model in models]
        states = [model.state_dict() for model in models]
        self._tensors = [[state[name] for name in names] for state in states]
        self._joints = [
            (joint, [state[name] for state in states])
            for name, joint in self._head.state_dict().items()
            if name in names
        ]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._tails)

    def load(self, place: int, flat: Tensor) -> None:
        """Make the model at ``place`` the one of these parameters."""
        tensors = self._tensors[place]
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))

    def join(self) -> None:
        """Bring what was loaded into the layers that the models have together."""
        for joint, parts in self._joints:
            joint.copy_(torch.cat(parts))

    def logits(self, x: Tensor, count: int) -> list[Tensor]:
        """Return the logits of the first ``count`` models.

        The layers together always have all of them, so that a model is computed by the same
        kernels in whatever company it is.
        """
        if x.dim() == 4:
            x = x.to(memory_format=self._layout)
        parts = self._head(x).chunk(self.count, dim=1)
        return [tail(part) for tail, part in zip(self._tails[:count], parts[:count], strict=True)]


def _head(plain: PlainLayer) -> tuple[tuple[str, PlainLayer], ...]:
    """Return the first layers, as far as the channels of several models do not meet in them."""
    done, summed = 0, False
    for _, layer in plain.children:
        sums = layer.kind in ("Conv2d", "Linear") and "groups" not in layer.arguments
        # Behind a sum over the inputs, which all models share, each has channels of its own.
        own = layer.kind == "BatchNorm2d" if summed else sums
        if not own and layer.kind not in CHANNELWISE:
            break
        done, summed = done + 1, summed or sums
    return plain.children[:done] if summed else ()


def _grown(layer: PlainLayer, count: int) -> PlainLayer:
    """Return the layer of ``count`` models side by side, each with channels of its own."""
    if layer.kind in _GROWS:
        size = _GROWS[layer.kind]
        return replace(layer, arguments={**layer.arguments, size: count * layer.arguments[size]})
    # Fresh memory for the largest activations of all took longer than the convolution.
    return PlainLayer("ReLU", {"inplace": True}) if layer.kind == "ReLU" else layer


def _build(plain: PlainLayer, device: torch.device, layout: torch.memory_format) -> nn.Module:
    """Return the module with zeros in it; nothing is drawn from torch's random state."""
    with torch.device("meta"):
        module = plain.build()
    module = module.to_empty(device=device).to(memory_format=layout)
    for tensor in module.state_dict().values():
        tensor.zero_()
    return module.eval()


@torch.inference_mode()
def _largest(module: nn.Module, example: Tensor) -> int:
    """Return how many numbers the largest activation of one example has."""
    sizes = [1]

    def note(_module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.numel())

    hooks = [layer.register_forward_hook(note) for layer in module.modules()]
    module(example)
    for hook in hooks:
        hook.remove()
    return max(sizes)


def _flat(params: Params, names: Collection[str]) -> Tensor:
    return torch.from_numpy(np.concatenate([params[name].ravel() for name in names]))


def subset(data: Resident, most: int) -> Resident:
    """Return ``most`` of the examples (0, or more than there are: all), by their labels alone.

    Every class keeps its share, evenly spaced among its examples, and never less than one: with
    more classes than ``most`` it is one of each.
    """
    if not 0 < most < len(data):
        return data
    chosen = _spaced(data.labels.cpu().numpy(), most)
    return replace(data, rows=data.rows[torch.from_numpy(chosen).to(data.rows.device)])


def _spaced(labels: Indices, most: int) -> Indices:
    """Return the positions of the examples, ascending."""
    _, of_class, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = np.argsort(of_class, kind="stable")
    starts = np.cumsum(sizes) - sizes
    owner = of_class[by_class]
    rank = np.arange(len(labels)) - starts[owner]
    # Seats by Sainte-Lague's divisors, after a first one for every class.
    claims = np.where(rank == 0, np.inf, sizes[owner] / (2 * rank + 1))
    winners = np.argsort(-claims, kind="stable")[: max(most, len(sizes))]
    seats = np.bincount(owner[winners])
    spaced = [
        by_class[start + (2 * np.arange(taken) + 1) * size // (2 * taken)]
        for start, size, taken in zip(starts, sizes, seats, strict=True)
    ]
    return np.sort(np.concatenate(spaced))
