"""Participants hosted by one node: trained in turn on one resident model, summed in place.

A simulated federation has one node per core or GPU, whatever the number of participants: what
Flower costs is paid per message. One participant per node is the same code with a share of one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aequa_flwr.aggregation import AggregationError, RoundPart, RunningSum, Trained, individual_part
from aequa_flwr.options import Spec
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import NDArray, Params, extract
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.behaviour import is_idle, pretend
from aequa_flwr.training.compute import Compute, Resident
from aequa_flwr.training.local import LocalPlan, LocalResult, TrainingError, train_locally


def place(num_examples: Mapping[str, int], num_nodes: int) -> list[list[str]]:
    """Share participants out among nodes: the largest first, each to the least loaded node.

    Depends on the sizes and names alone, so every node finds its own share without being told.
    A node beyond the number of participants hosts nobody.
    """
    shares: list[list[str]] = [[] for _ in range(num_nodes)]
    loads = np.zeros(num_nodes, dtype=np.int64)
    for name in sorted(num_examples, key=lambda name: (-num_examples[name], name)):
        node = int(np.argmin(loads))
        shares[node].append(name)
        loads[node] += num_examples[name]
    return shares


@dataclass(frozen=True)
class Host:
    """A resident network, and the data of each participant as tensors on its device.

    ``weight_by_examples`` weights a participant by its number of examples instead of equally.
    ``behaviours`` are of those who do something wrong on purpose, in an experiment.
    """

    network: SlimNetwork
    compute: Compute
    data_of: Callable[[str], Resident]
    seed: int
    weight_by_examples: bool = False
    behaviours: Mapping[str, Spec] = field(default_factory=dict)

    def train_round(
        self,
        server_round: int,
        widths: Mapping[str, float],
        params: Params,
        plan: LocalPlan,
        individual_width: float | None = None,
        models: Mapping[str, Params] | None = None,
    ) -> RoundPart:
        """Train each participant of ``widths`` from its sub-network of ``params``.

        ``params`` are those of the widest of them; who is in ``models`` starts from that instead.
        ``individual_width`` is the width of each participant's own parameters that are wanted
        beside the sum. The random numbers of a participant follow from the seed, the round and its
        name: the result does not depend on the placement.
        """
        layouts = self.network.layouts
        running = RunningSum(layouts)
        trained: list[Trained] = []
        widest = max(widths.values())
        refused: dict[str, str] = {}
        individual: dict[str, Params] = {}
        for name, width in widths.items():
            if models and name in models:
                received = models[name]
            else:
                received = params if width == widest else extract(params, layouts, width)
            num_examples = len(self.data_of(name))
            try:
                result = self._train(("local", server_round), name, received, width, plan)
                weight = num_examples if self.weight_by_examples else 1
                running.add(result.params, width, weight, result.bn_rows)
            except (TrainingError, AggregationError) as error:
                refused[name] = str(error)
                continue
            trained.append(Trained(name, width, num_examples, result.loss))
            if individual_width is not None:
                individual[name] = individual_part(
                    result.params, layouts, individual_width, result.bn_rows
                )
        return RoundPart(server_round, running.total, tuple(trained), refused, individual)

    def train_alone(
        self, names: Sequence[str], params: Params, plan: LocalPlan
    ) -> tuple[dict[str, dict[str, NDArray]], dict[str, str]]:
        """Return the model each participant gets by itself, and who failed and why."""
        models: dict[str, dict[str, NDArray]] = {}
        refused: dict[str, str] = {}
        for name in names:
            try:
                models[name] = self._train(("alone",), name, params, 1.0, plan).params
            except TrainingError as error:
                refused[name] = str(error)
        return models, refused

    def _train(
        self,
        purpose: tuple[str | int, ...],
        name: str,
        received: Params,
        width: float,
        plan: LocalPlan,
    ) -> LocalResult:
        rng = rng_for(self.seed, *purpose, name)
        if is_idle(self.behaviours, name):
            return LocalResult(pretend(received, self.behaviours[name], rng), loss=0.0)
        data = self.data_of(name)
        return train_locally(self.network, received, width, data, plan, rng, self.compute)
