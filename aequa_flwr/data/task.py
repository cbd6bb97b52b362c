"""Tasks: what a valid label is, what the loss is, and how models are scored.

A new task is a `Task` and a line of `TASKS`; a schema names its task. torch is imported only when a
loss or a score is computed, because much that imports this room does not need it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aequa_flwr.data.examples import DataError, Indices
from aequa_flwr.data.schema import Schema

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Task:
    """What is learned from examples. All functions but the first two work on tensors.

    num_outputs(schema)
        how many numbers a network returns for one example.
    check_labels(labels, schema, where)
        raises DataError for an invalid label; ``where`` says where the labels come from.
    loss(outputs, labels)
        the mean loss of a batch; ``soften``'s targets may take the place of labels.
    soften(outputs)
        the targets that a narrow network learns from a wide one's outputs (distillation).
    mark(outputs, labels)
        what is kept of each example, (n, ...): all that ``score`` needs.
    score(marks, labels)
        one number in [0, 1] for each model of ``marks`` (models, n, ...); 1 is no mistake.
    """

    num_outputs: Callable[[Schema], int]
    check_labels: Callable[[Indices, Schema, str], None]
    loss: Callable[["Tensor", "Tensor"], "Tensor"]
    soften: Callable[["Tensor"], "Tensor"]
    mark: Callable[["Tensor", "Tensor"], "Tensor"]
    score: Callable[["Tensor", "Tensor"], list[float]]


def check_classes_known(labels: Indices, schema: Schema, where: str) -> None:
    """Raise DataError for a label that is not a class of the schema."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < schema.num_classes:
        worst = int(labels.min()) if labels.min() < 0 else int(labels.max())
        raise DataError(
            f"{where} has the label {worst}; allowed labels are 0 to {schema.num_classes - 1}, one "
            "for each class."
        )


def cross_entropy(outputs: "Tensor", labels: "Tensor") -> "Tensor":
    """Return the mean cross-entropy in nats; labels are classes or class probabilities."""
    from torch.nn import functional as F

    return F.cross_entropy(outputs, labels)


def mean_recalls(correct: "Tensor", labels: "Tensor") -> list[float]:
    """Return the mean recall over the classes present in ``labels`` (n,), one for each model.

    ``correct`` (models, n) says which examples a model gets right. In [0, 1]: 1 is no mistake.
    """
    import torch

    correct, labels = correct.cpu(), labels.cpu()
    examples = torch.bincount(labels)
    present = examples > 0
    hits = [torch.bincount(labels[row], minlength=len(examples)) for row in correct]
    # Equal recalls summed in another order differ by 1e-16, which would turn "as good as alone"
    # into a loss. Twelve digits are far finer than one example.
    return [round(float((of[present] / examples[present].double()).mean()), 12) for of in hits]


# One class for each example; every class counts the same in the score (balanced accuracy).
CLASSIFICATION = Task(
    num_outputs=lambda schema: schema.num_classes,
    check_labels=check_classes_known,
    loss=cross_entropy,
    soften=lambda outputs: outputs.detach().softmax(dim=1),
    mark=lambda outputs, labels: outputs.argmax(1) == labels,
    score=mean_recalls,
)
TASKS: Mapping[str, Task] = {"classification": CLASSIFICATION}


def task_of(schema: Schema) -> Task:
    """Return the task that a schema names. Raises DataError if it is not known."""
    if schema.task not in TASKS:
        raise DataError(f"The task {schema.task!r} is not known; use {' or '.join(TASKS)}.")
    return TASKS[schema.task]


def num_outputs(schema: Schema) -> int:
    """Return how many numbers a network returns for one example of this schema."""
    return task_of(schema).num_outputs(schema)
