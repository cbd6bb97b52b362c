"""Result and memory of 200 rounds on digits in which one reply in ten is bad.

    python benchmarks/soak.py --plot docs/soak.svg

The real ServerApp and ClientApp run in one process, with ten nodes of one participant each. A bad
reply has one of the faults of tests/integration/test_bad_replies.py, or is an error from Flower.
A run of the same seed without faults is the reference.
"""

import argparse
import gc
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import psutil
from flwr.app import Error, Message

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from aequa_flwr.federation import TRAIN_ROUND  # noqa: E402 - tests are no installed package
from tests.integration.in_process import InProcessGrid, record_of, run_in_process  # noqa: E402
from tests.integration.test_bad_replies import FAULTS  # noqa: E402

_SETTINGS: dict[str, Any] = {
    "num_nodes": 10, "participants": 10, "rounds": 200, "partition": "homogeneous", "seed": 1,
    # With one bad reply in ten, some participant has three in a row sooner or later.
    "set_aside_after": 0,
}  # fmt: skip
# Of the faults, not of the training.
_SEED = 7


def grid_with_faults(rate: float, memory: list[float]) -> type[InProcessGrid]:
    """Return a grid that damages a share ``rate`` of replies and notes memory before each round."""
    faults = [fault for fault, _ in FAULTS.values()]
    process = psutil.Process()

    class Faulty(InProcessGrid):
        def answer(self, message: Message) -> Message:
            meta = message.metadata
            if meta.message_type != TRAIN_ROUND:
                return super().answer(message)
            if int(meta.group_id) > len(memory):
                gc.collect()
                memory.append(process.memory_info().rss / 1e6)
            self.sent.clear()  # only tests need it
            # Drawn by round and node: replies arrive in another order in every run.
            rng = np.random.default_rng((_SEED, int(meta.group_id), meta.dst_node_id))
            if rng.random() >= rate:
                return super().answer(message)
            chosen = int(rng.integers(len(faults) + 1))
            if chosen == len(faults):
                return Message(Error(code=3, reason="injected"), reply_to=message)
            reply = super().answer(message)
            faults[chosen](reply)
            return reply

    return Faulty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="file for a plot of the memory")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # a line for each refusal
    records, memories = {}, {}
    for name, rate in (("clean", 0.0), ("faults", 0.1)):
        memory: list[float] = []
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            run_in_process(run, grid=grid_with_faults(rate, memory), **_SETTINGS)
            records[name], memories[name] = record_of(run), memory
    asked = _SETTINGS["participants"] * _SETTINGS["rounds"]
    refused = len(records["faults"]["failures"])
    print(f"refused: {refused} of {asked} replies ({refused / asked:.1%})")
    for name, record in records.items():
        trained = sum(line["num_trained"] for line in record["rounds"])
        accuracy = record["measures"]["accuracy"]
        print(f"{name}: {record['status']}, accuracy {accuracy:.4f}, {trained} replies used")
        memory = memories[name]
        print(
            f"  memory after round 20 {memory[20]:.0f} MB, round 200 {memory[-1]:.0f} MB, "
            f"most {max(memory[20:]):.0f} MB"
        )
    if options.plot is not None:
        mpl.rcParams["svg.hashsalt"] = "aequa"
        figure, axes = plt.subplots(figsize=(7, 3))
        # The colours also differ in lightness; the second line is narrower and on top.
        for (name, memory), (colour, width) in zip(
            memories.items(), (("#9ecae1", 5), ("#d94801", 1.5)), strict=True
        ):
            label = {"clean": "without faults", "faults": "one bad reply in ten"}[name]
            axes.plot(range(1, len(memory) + 1), memory, color=colour, linewidth=width, label=label)
        most = max(max(memory) for memory in memories.values())
        axes.set(xlabel="Round", ylabel="Memory of the process, MB", ylim=(0, 1.4 * most))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right")
        figure.tight_layout()
        figure.savefig(options.plot, metadata={"Date": None})


if __name__ == "__main__":
    main()
