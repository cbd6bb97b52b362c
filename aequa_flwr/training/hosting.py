"""The participants hosted by one node: trained in turn on one resident network, summed in place.

A simulated federation has one node per core or GPU, whatever the number of participants, because
Flower's cost is per message. A node with one participant runs the same code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aequa_flwr.aggregation import AggregationError, RoundPart, RunningSum, Trained, individual_part
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import NDArray, Params, extract
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.behaviour import Cheat, LocalTask, Memory
from aequa_flwr.training.compute import Compute, Resident
from aequa_flwr.training.local import LocalPlan, LocalResult, TrainingError, train_locally


def place(num_examples: Mapping[str, int], num_nodes: int) -> list[list[str]]:
    """Return the participants of each node: the largest first, each to the least loaded node.

    The result depends on sizes and names alone, so every node can compute its own share. Nodes
    beyond the number of participants host nobody.
    """
    shares: list[list[str]] = [[] for _ in range(num_nodes)]
    loads = np.zeros(num_nodes, dtype=np.int64)
    for name in sorted(num_examples, key=lambda name: (-num_examples[name], name)):
        node = int(np.argmin(loads))
        shares[node].append(name)
        loads[node] += num_examples[name]
    return shares


@dataclass(frozen=True)
class Cheating:
    """What simulated participants do instead of training honestly, by name.

    ``cheats`` answer their tasks, with what ``memories`` keep for them. ``outside`` returns
    examples that nobody holds.
    """

    cheats: Mapping[str, Cheat] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    outside: Callable[[], Resident] | None = None
    num_classes: int = 1
    num_rounds: int = 1

    def claimed(self, name: str, num_examples: int) -> int:
        """Return the number of examples that ``name`` reports."""
        return self.cheats[name].claimed(num_examples) if name in self.cheats else num_examples

    def answer(self, task: LocalTask) -> LocalResult:
        """Return what the participant sends, and let it remember what it may need later."""
        memory = self.memories.setdefault(task.name, Memory())
        task = task.changed(
            memory=memory,
            outside=self.outside,
            num_classes=self.num_classes,
            num_rounds=self.num_rounds,
        )
        result = self.cheats[task.name].answer(task)
        if task.is_alone:
            memory.alone = result.params
        else:
            memory.received = task.received
        return result


@dataclass(frozen=True)
class Host:
    """A resident network that trains participants on their data, which is on the same device.

    ``data_of`` returns a participant's data. ``weight_by_examples`` weights participants by their
    number of examples instead of equally. ``cheating`` is for simulated participants only.
    """

    network: SlimNetwork
    compute: Compute
    data_of: Callable[[str], Resident]
    seed: int
    weight_by_examples: bool = False
    cheating: Cheating = field(default_factory=Cheating)

    def train_round(
        self,
        server_round: int,
        widths: Mapping[str, float],
        params: Params,
        plan: LocalPlan,
        individual_width: float | None = None,
        models: Mapping[str, Params] | None = None,
    ) -> RoundPart:
        """Train each participant of ``widths`` from its sub-network; return their sum and losses.

        ``params`` belong to the widest of them. A participant in ``models`` starts from its own
        model instead. With ``individual_width`` the result also holds each participant's own
        parameters at that width, or at its own if that is narrower. A participant's random numbers
        depend only on the seed, the round and its name, so the result does not depend on the
        placement.
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
            num_examples = self.cheating.claimed(name, len(self.data_of(name)))
            try:
                result = self._train(server_round, name, received, width, plan)
                weight = num_examples if self.weight_by_examples else 1
                running.add(result.params, width, weight, result.bn_rows)
            except (TrainingError, AggregationError) as error:
                refused[name] = str(error)
                continue
            trained.append(Trained(name, width, num_examples, result.loss))
            if individual_width is not None:
                individual[name] = individual_part(
                    result.params, layouts, min(width, individual_width), result.bn_rows
                )
        return RoundPart(server_round, running.total, tuple(trained), refused, individual)

    def train_alone(
        self, names: Sequence[str], params: Params, plan: LocalPlan
    ) -> tuple[dict[str, dict[str, NDArray]], dict[str, str]]:
        """Return the standalone model of each participant, and the reasons of those that failed."""
        models: dict[str, dict[str, NDArray]] = {}
        refused: dict[str, str] = {}
        for name in names:
            try:
                models[name] = self._train(0, name, params, 1.0, plan).params
            except TrainingError as error:
                refused[name] = str(error)
        return models, refused

    def _train(
        self, server_round: int, name: str, received: Params, width: float, plan: LocalPlan
    ) -> LocalResult:
        """Return what ``name`` sends; ``server_round`` is 0 for its model alone."""
        purpose = ("local", server_round) if server_round else ("alone",)
        rng = rng_for(self.seed, *purpose, name)
        data, network, compute = self.data_of(name), self.network, self.compute
        if name not in self.cheating.cheats:
            return train_locally(network, received, width, data, plan, rng, compute)
        task = LocalTask(
            name, server_round, received, width, plan, data, rng, network, compute, self.seed
        )
        return self.cheating.answer(task)
