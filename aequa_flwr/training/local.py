"""Local training (paper, Algorithm 1): each batch at the widest width and at a random one."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from aequa_flwr.data import CLASSIFICATION, Task
from aequa_flwr.slim import NDArray, Params, bn_rows_held
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.augment import crop_and_flip
from aequa_flwr.training.compute import Compute, Resident
from aequa_flwr.training.sgd import Momentum


class TrainingError(RuntimeError):
    """Training that did not give a usable model; the text becomes a reason in the record."""


@dataclass(frozen=True)
class LocalPlan:
    """How a participant trains between receiving and returning parameters.

    ``learning_rates`` has one entry for each epoch. ``p_min`` is the narrowest width that can be
    drawn; None trains at the received width alone, which at width 1.0 is plain FedAvg. With
    ``distillation`` the narrow pass learns from the detached soft-max of the wide pass, not from
    the labels. ``augmented`` crops and mirrors images at random. ``clip_norm`` bounds the joint
    norm of all gradients of a step; 0: no bound.
    """

    learning_rates: tuple[float, ...]
    batch_size: int
    momentum: float
    p_min: float | None
    distillation: bool = False
    augmented: bool = False
    clip_norm: float = 0.0


@dataclass(frozen=True)
class LocalResult:
    """The parameters of the trained sub-network, and the mean loss of its wide passes.

    ``bn_rows`` are the BatchNorm rows that were trained; empty without BatchNorm.
    """

    params: dict[str, NDArray]
    loss: float
    bn_rows: tuple[int, ...] = ()


def scheduled_rate(rate: float, schedule: str, server_round: int, rounds: int) -> float:
    """Return the learning rate of ``server_round``, which counts from 1 to ``rounds``.

    "step" divides ``rate`` by 10 at 50 % of the rounds and again at 75 %. "paper" does so only if
    there are at least 100 rounds, "constant" never.
    """
    if schedule == "constant" or (schedule == "paper" and rounds < 100):
        return rate
    over = (server_round - 1) / rounds
    return float(rate * 0.1 ** ((over >= 0.5) + (over >= 0.75)))


def train_locally(
    network: SlimNetwork,
    received: Params,
    width: float,
    data: Resident,
    plan: LocalPlan,
    rng: np.random.Generator,
    compute: Compute,
) -> LocalResult:
    """Return ``received``, the sub-network of ``width``, after training on ``data``.

    ``network`` is a resident module on the compute's device and is overwritten in place; only its
    prefixes of ``width`` are used. Momentum starts from zero. Raises TrainingError if the loss
    is no longer finite.
    """
    network.load(received, width)
    if not network.training:  # train() walks all layers
        network.train()
    optimizer = Momentum(network.trainable, plan.momentum)
    total = torch.zeros((), device=compute.device)
    num_steps = 0
    widths = {width}
    for rate in plan.learning_rates:
        for rows, narrow in _steps(network, len(data), width, plan, rng):
            x, y = data.batch(torch.from_numpy(rows).to(compute.device))
            if plan.augmented:
                x = crop_and_flip(x, data.black, rng)
            widths.add(narrow or width)
            with _normalisable(network, y), compute.autocast():
                loss, wide_loss = sandwich_loss(
                    network, x, y, width, narrow, task=data.task, distillation=plan.distillation
                )
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            if plan.clip_norm:
                torch.nn.utils.clip_grad_norm_(network.trainable, plan.clip_norm)
            optimizer.step(rate)
            total += wide_loss.detach()
            num_steps += 1
    loss_sum = float(total)
    if not math.isfinite(loss_sum):
        raise TrainingError("the loss is no longer a finite number; lower the learning rate")
    layouts = network.layouts
    bn_rows = {bn_rows_held(layouts, w) - 1 for w in widths} if network.has_batch_norm else ()
    return LocalResult(network.dump(width), loss_sum / num_steps, tuple(sorted(bn_rows)))


@contextmanager
def _normalisable(network: SlimNetwork, y: Tensor) -> Iterator[None]:
    """Raise TrainingError with advice if BatchNorm cannot normalise a batch of one example."""
    try:
        yield
    except ValueError as error:  # torch: "Expected more than 1 value per channel"
        if not network.has_batch_norm or len(y) > 1:
            raise
        raise TrainingError(
            "BatchNorm cannot normalise a single example; the participant needs two or more, and "
            "batch-size must be above 1"
        ) from error


def sandwich_loss(
    network: SlimNetwork,
    x: Tensor,
    y: Tensor,
    width: float,
    narrow: float | None,
    *,
    task: Task = CLASSIFICATION,
    distillation: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the (wide + narrow, wide) loss of one batch.

    This is the one-pass sandwich: both widths share the first two layers. ``narrow`` None is the
    wide pass alone.
    """
    if narrow is None:
        wide_loss = task.loss(network(x, width), y)
        return wide_loss, wide_loss
    narrow_logits, wide_logits = network.forward_nested(x, (narrow, width))
    wide_loss = task.loss(wide_logits, y)
    target = task.soften(wide_logits) if distillation else y
    return wide_loss + task.loss(narrow_logits, target), wide_loss


def _steps(
    network: SlimNetwork,
    num_examples: int,
    width: float,
    plan: LocalPlan,
    rng: np.random.Generator,
) -> Iterator[tuple[npt.NDArray[np.int64], float | None]]:
    """Yield the rows and the narrow width of each step of one epoch; the last may be short."""
    order = rng.permutation(num_examples)
    starts = list(range(0, num_examples, plan.batch_size))
    # BatchNorm cannot normalise one example, so a single last one joins the batch before it.
    if num_examples % plan.batch_size == 1 and len(starts) > 1 and network.has_batch_norm:
        starts.pop()
    stops = [*starts[1:], num_examples]
    draws = None if plan.p_min is None else network.draw(rng, plan.p_min, width, len(starts))
    for step, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        yield order[start:stop], None if draws is None else float(draws[step])
