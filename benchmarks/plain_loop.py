"""FedAvg in plain PyTorch, as a reference for a simulated round.

Worker processes with one thread each hold their participants' tensors and one resident model. A
round sends them the parameters; each trains its participants in turn and returns their sum. There
is no Flower, no Ray, no checks, no record and no measuring, only the training steps.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks import build_network, build_plain
from aequa_flwr.training import place

Images = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
Labels = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
_RATE, _MOMENTUM = 0.01, 0.9


def _model(schema: Schema) -> nn.Module:
    network = build_network("cnn", schema)
    model = build_plain(network.plain(1.0), network.plain_params(network.dump(), 1.0)).train()
    return model.to(memory_format=torch.channels_last)


def _work(
    pipe: Connection, schema: Schema, shares: list[tuple[Images, Labels]], batch: int
) -> None:
    torch.set_num_threads(1)
    model = _model(schema)
    tensors = list(model.parameters())
    data = [(torch.from_numpy(x).float().div(255), torch.from_numpy(y)) for x, y in shares]
    generator = torch.Generator().manual_seed(1)
    while (received := pipe.recv()) is not None:
        start = [torch.from_numpy(value) for value in received]
        sums = [torch.zeros_like(value) for value in start]
        for x, y in data:
            with torch.no_grad():
                for tensor, value in zip(tensors, start, strict=True):
                    tensor.copy_(value)
            optimizer = torch.optim.SGD(tensors, _RATE, _MOMENTUM, foreach=True)
            order = torch.randperm(len(y), generator=generator)
            for rows in torch.split(order, batch):
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            with torch.no_grad():
                for total, tensor in zip(sums, tensors, strict=True):
                    total.add_(tensor)
        pipe.send([value.numpy() for value in sums])


class PlainLoop:
    """The workers, and the parameters between rounds."""

    def __init__(self, pipes: Sequence[Connection], params: list[Floats], count: int) -> None:
        self._pipes, self._params, self._count = pipes, params, count

    def round(self) -> None:
        for pipe in self._pipes:
            pipe.send(self._params)
        parts = [pipe.recv() for pipe in self._pipes]
        self._params = [sum(values) / self._count for values in zip(*parts, strict=True)]


@contextmanager
def plain_loop(
    x: Images, y: Labels, groups: Labels, schema: Schema, *, workers: int, batch: int
) -> Iterator[PlainLoop]:
    """Start workers that hold the images of the participants ``groups``; stop them at the end."""
    rows = {str(group): np.flatnonzero(groups == group) for group in np.unique(groups)}
    shares = place({name: len(mine) for name, mine in rows.items()}, workers)
    context = multiprocessing.get_context("spawn")
    ours, processes = [], []
    for names in shares:
        mine, theirs = context.Pipe()
        data = [(x[rows[name]], y[rows[name]]) for name in names]
        process = context.Process(target=_work, args=(theirs, schema, data, batch))
        process.start()
        ours.append(mine)
        processes.append(process)
    params = [tensor.detach().numpy().copy() for tensor in _model(schema).parameters()]
    try:
        yield PlainLoop(ours, params, len(rows))
    finally:
        for pipe in ours:
            pipe.send(None)
        for process in processes:
            process.join()
