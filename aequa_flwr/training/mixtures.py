"""Scores of mixtures, the received model plus weighted updates, computed many at a time."""

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

# Kinds of layers that can be joined across models into one wider layer, and the argument that
# grows.
_GROWS = {"Conv2d": "out_channels", "Linear": "out_features", "BatchNorm2d": "num_features"}
_MOST_TOGETHER = 8
_LEAST_BATCH, _MOST_BATCH = 64, 2048
# Bytes of one layer's activations: what stays in a CPU's cache, and what fits on other devices.
_CACHE, _MEMORY = 2**23, 2**28
# Parameters summed at a time: all 5.5 million of the LSTM at once take 7 times as long.
_BLOCK = 2**17


class Mixtures:
    """Sub-models of one width: the received one plus weighted sums of participants' updates.

    ``received`` are sub_params of ``width``. ``updates`` maps the same names to the updates of n
    participants, (n, *shape). Models are measured on ``data``, or on a ``subset`` of
    ``most_examples`` (0: all). The network only provides its architecture; its parameters are
    neither read nor changed.
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
        """Return the task's scores in [0, 1] and the mean losses of K mixtures, (K,) each.

        Mixture k is the received model plus the updates weighted by row k of ``weights`` (K, n).
        All zeros give the received model, a single 1 gives the model of one participant. If the
        weights are not negative and add up to at most 1, BatchNorm's variances stay positive.
        The result of a row does not depend on the other rows.
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
        """Return the logits (examples, classes) of a chunk of mixtures, on the CPU."""
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
        """Compute one mixture; updates with weight 0 are skipped, even if they are not finite.

        The sum is in float64 and then rounded, so it hardly ever depends on the order of the
        participants.
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
    """Several plain networks of the same architecture, evaluated together on the same inputs.

    Up to the second layer with weights they are one network with a multiple of the channels; the
    rest of each runs separately. On one core with 2,000 images, the paper's CNN at width 0.25
    takes 0.27 of the time of a slimmable network that loads one model after the other. Plain
    networks one after the other take 0.94. torch.func's vmap takes 0.75, because it separates the
    channels of the models before pooling. Later convolutions are no faster in groups.
    """

    def __init__(
        self, plain: PlainLayer, names: Sequence[str], example: Tensor, compute: Compute
    ) -> None:
        """``names`` are the tensors in the order of ``load``; ``example`` is a batch of one."""
        on_cpu = compute.device.type == "cpu"
        # channels_last makes wide layers fast on a CPU; it was not measured on other devices.
        self._layout = torch.channels_last if on_cpu else torch.contiguous_format
        head, first = _head(plain), _build(plain, compute.device, self._layout)
        room = (_CACHE if on_cpu else _MEMORY) // (4 * _largest(first, example))
        # Joining layers does not pay if it leaves tiny batches for the layers after them.
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
        """The number of networks."""
        return len(self._tails)

    def load(self, place: int, flat: Tensor) -> None:
        """Load the parameters ``flat`` into the network at ``place``."""
        tensors = self._tensors[place]
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))

    def join(self) -> None:
        """Copy the loaded parameters into the joint layers."""
        for joint, parts in self._joints:
            joint.copy_(torch.cat(parts))

    def logits(self, x: Tensor, count: int) -> list[Tensor]:
        """Return the logits of the first ``count`` networks.

        The joint layers always compute all of them, so that a network runs in the same kernels
        whichever others are loaded.
        """
        if x.dim() == 4:
            x = x.to(memory_format=self._layout)
        parts = self._head(x).chunk(self.count, dim=1)
        return [tail(part) for tail, part in zip(self._tails[:count], parts[:count], strict=True)]


def _head(plain: PlainLayer) -> tuple[tuple[str, PlainLayer], ...]:
    """Return the first layers, up to where the channels of joined networks would mix."""
    done, summed = 0, False
    for _, layer in plain.children:
        sums = layer.kind in ("Conv2d", "Linear") and "groups" not in layer.arguments
        # After a sum over the inputs, which all networks share, each has its own channels.
        own = layer.kind == "BatchNorm2d" if summed else sums
        if not own and layer.kind not in CHANNELWISE:
            break
        done, summed = done + 1, summed or sums
    return plain.children[:done] if summed else ()


def _grown(layer: PlainLayer, count: int) -> PlainLayer:
    """Return the joint layer of ``count`` networks, each with its own channels."""
    if layer.kind in _GROWS:
        size = _GROWS[layer.kind]
        return replace(layer, arguments={**layer.arguments, size: count * layer.arguments[size]})
    # Allocating memory for the largest activations took longer than the convolution.
    return PlainLayer("ReLU", {"inplace": True}) if layer.kind == "ReLU" else layer


def _build(plain: PlainLayer, device: torch.device, layout: torch.memory_format) -> nn.Module:
    """Return the module filled with zeros; torch's random state is not used."""
    with torch.device("meta"):
        module = plain.build()
    module = module.to_empty(device=device).to(memory_format=layout)
    for tensor in module.state_dict().values():
        tensor.zero_()
    return module.eval()


@torch.inference_mode()
def _largest(module: nn.Module, example: Tensor) -> int:
    """Return the number of values in the largest activation of one example."""
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
    """Return ``most`` of the examples, stratified by label; 0, or more than there are: all.

    Every class keeps its share, evenly spaced among its examples, and at least one example. With
    more classes than ``most``, there is one example of each class.
    """
    if not 0 < most < len(data):
        return data
    chosen = _spaced(data.labels.cpu().numpy(), most)
    return replace(data, rows=data.rows[torch.from_numpy(chosen).to(data.rows.device)])


def _spaced(labels: Indices, most: int) -> Indices:
    """Return the positions of the chosen examples, ascending."""
    _, of_class, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = np.argsort(of_class, kind="stable")
    starts = np.cumsum(sizes) - sizes
    owner = of_class[by_class]
    rank = np.arange(len(labels)) - starts[owner]
    # Seats by the Sainte-Lague method, after a first seat for every class.
    claims = np.where(rank == 0, np.inf, sizes[owner] / (2 * rank + 1))
    winners = np.argsort(-claims, kind="stable")[: max(most, len(sizes))]
    seats = np.bincount(owner[winners])
    spaced = [
        by_class[start + (2 * np.arange(taken) + 1) * size // (2 * taken)]
        for start, size, taken in zip(starts, sizes, seats, strict=True)
    ]
    return np.sort(np.concatenate(spaced))
