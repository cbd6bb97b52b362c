"""Quality and cost of all contribution estimators, on the updates of one run.

    python benchmarks/contribution.py --data-dir DIR

Ten participants hold equal shares of Fashion-MNIST, with 0, 10, ..., 90 % of their labels flipped.
All train together as in a run. After each round every estimator gets the same evidence and is
timed. Prints for each estimator the Spearman correlation of its contributions with the share of
true labels, the number of models it measured in a round, and its time relative to training.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from scipy.stats import spearmanr

from aequa_flwr.contribution import Assessor, Ledger, build_estimator
from aequa_flwr.data import FederatedData, federated_data
from aequa_flwr.seeding import rng_for
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim import Params
from aequa_flwr.slim.networks import SlimNetwork, build_network
from aequa_flwr.training import (
    Compute,
    Host,
    LocalPlan,
    Resident,
    ServerData,
    choose_compute,
    flip_labels,
)

METHODS = "standalone,participation,data-size,cgsv,shapfed,fedsv,gtg-shapley,comfedsv,fedfaim"


@dataclass
class Line:
    """One estimator: its ledger, the models it measured and the seconds it took so far."""

    assessor: Assessor
    ledger: Ledger
    num_scored: int = 0
    seconds: float = 0.0

    def assess(
        self,
        server_round: int,
        params: Params,
        individual: Mapping[str, Params],
        num_examples: Mapping[str, int],
    ) -> int:
        """Assess a round; return how many models were measured."""
        # As in a run, an estimator that does not compare updates gets none.
        wanted = self.assessor.individual_width is not None
        trained = {name: own if wanted else {} for name, own in individual.items()}
        seen = self.assessor.evidence(server_round, lambda _: params, trained, num_examples, {})
        self.ledger, scored = self.assessor.assess(self.ledger, seen, params)
        return scored


def flipped(count: int) -> list[float]:
    """Return the share of flipped labels of each participant, from 0 to 0.9."""
    return [0.9 * k / max(1, count - 1) for k in range(count)]


def make_host(
    config: RunConfig, data: FederatedData, network: SlimNetwork, compute: Compute
) -> Host:
    schema = data.dataset.schema
    noise = dict(zip(data.shares, flipped(len(data.shares)), strict=True))

    def tensors(name: str) -> Resident:
        resident = compute.resident(data.dataset.train, schema, data.shares[name])
        rng = rng_for(config.seed, "flipped labels", name)
        return flip_labels(resident, noise[name], schema.num_classes, rng)

    kept = {name: tensors(name) for name in data.shares}
    return Host(network, compute, kept.__getitem__, config.seed)


def open_lines(
    names: list[str],
    server: ServerData,
    width: float,
    config: RunConfig,
    alone: Mapping[str, float],
) -> dict[str, Line]:
    lines = {}
    for name in names:
        assessor = Assessor(
            build_estimator(name),
            width,
            server.network.layouts,
            classes=10,
            seed=config.seed,
            scorer=server.scorer(width, config.utility_examples),
        )
        lines[name] = Line(assessor, assessor.begin(dict.fromkeys(alone, 1), alone))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True, help="folder with FashionMNIST/raw")
    parser.add_argument("--participants", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--methods", default=METHODS, help="estimators, separated by commas")
    parser.add_argument("--utility-examples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    config = RunConfig.parse(
        {
            "dataset": "fashion-mnist",
            "data-dir": options.data_dir,
            "participants": options.participants,
            "rounds": options.rounds,
            "utility-examples": options.utility_examples,
            "seed": options.seed,
        }
    )
    data = federated_data(config.data_spec)
    compute = choose_compute("auto", "float32")
    init_seed = int(rng_for(config.seed, "initial weights").integers(2**31))
    network = build_network(config.network, data.dataset.schema, init_seed=init_seed)
    width = network.ladder(config.narrowest(), config.p_max)[0]
    server = ServerData(
        network, compute, compute.resident(data.validation, data.dataset.schema), None
    )
    host = make_host(config, data, network, compute)
    plan = LocalPlan(
        (config.learning_rate,), config.batch_size, config.momentum, config.narrowest()
    )
    params: Params = network.dump()
    methods = options.methods.split(",")
    alone = dict.fromkeys(data.shares, 0.0)
    if "standalone" in methods:
        alone_plan = replace(plan, learning_rates=plan.learning_rates * config.rounds, p_min=None)
        models, _ = host.train_alone(list(data.shares), params, alone_plan)
        alone = {name: server.measure(m, (1.0,))[0].validation for name, m in models.items()}
    lines = open_lines(methods, server, width, config, alone)
    num_examples = {name: len(share) for name, share in data.shares.items()}
    trained_s = 0.0
    for server_round in range(1, config.rounds + 1):
        started = time.perf_counter()
        part = host.train_round(server_round, dict.fromkeys(data.shares, 1.0), params, plan, width)
        trained_s += time.perf_counter() - started
        for line in lines.values():
            started = time.perf_counter()
            scored = line.assess(server_round, params, part.individual, num_examples)
            line.seconds += time.perf_counter() - started
            line.num_scored += scored
        params = part.partial.mean(params)
        print(
            f"round {server_round}: {server.measure(params, (1.0,))[0].validation:.1%}", flush=True
        )
    report(lines, list(num_examples), trained_s, config.rounds)


def report(lines: Mapping[str, Line], names: list[str], trained_s: float, rounds: int) -> None:
    quality = [1 - share for share in flipped(len(names))]
    print(
        f"\n{len(names)} participants, {rounds} rounds, {torch.get_num_threads()} threads; ", end=""
    )
    print(f"training a round: {trained_s / rounds:.2f} s")
    print(f"{'method':<14}{'Spearman':>9}{'models/round':>14}{'s/round':>9}{'of training':>13}")
    for name, line in lines.items():
        values = list(line.assessor.contributions(line.ledger, names, names).values())
        constant = len(set(values)) < 2
        rank = "undefined" if constant else f"{spearmanr(values, quality).statistic:.3f}"
        per_round = line.seconds / rounds
        print(
            f"{name:<14}{rank:>9}{line.num_scored / rounds:>14.1f}{per_round:>9.3f}"
            f"{per_round * rounds / trained_s:>12.1%}"
        )


if __name__ == "__main__":
    main()
