"""Peak memory of the server while it folds the replies of a round, by number of participants.

    python benchmarks/server_memory.py

There is one reply of 2.2 million parameters (large-cnn) for each participant. Replies are encoded
and decoded as on the wire, and collected by the server's own code. Each number is measured in its
own process; another process writes the replies.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from flwr.app import Message, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict
from flwr.supercore.task_identity import TaskIdentity
from ratio import Row

from aequa_flwr.aggregation import RoundPart, RunningSum, Trained
from aequa_flwr.federation import Awaited, collect, encode_round_part
from aequa_flwr.slim.networks import HOMES, build_network
from aequa_flwr.training import keep_memory

_NETWORK = "large-cnn"
_COUNTS = (10, 100, 1000)
# The most replies that are written ahead.
_AHEAD = 3


def names_of(participants: int) -> list[str]:
    return [f"participant-{k:04}" for k in range(participants)]


def feed(participants: int, folder: Path) -> None:
    """Write the reply of every participant to ``folder``, as fast as they are read.

    This runs in its own process, so that its memory is not counted as the server's.
    """
    network = build_network(_NETWORK, HOMES[_NETWORK])
    params, layouts = network.dump(), network.layouts
    for k, name in enumerate(names_of(participants)):
        running = RunningSum(layouts)
        running.add({key: value + np.float32(k) for key, value in params.items()})
        part = RoundPart(1, running.total, (Trained(name, 1.0, 16, 0.5),))
        while len(list(folder.iterdir())) > _AHEAD:
            time.sleep(0.002)
        raw = recorddict_to_proto(encode_round_part(part)).SerializeToString()
        unfinished = folder / f"{k}.part"
        unfinished.write_bytes(raw)
        unfinished.rename(folder / str(k))


def taken(folder: Path, k: int, feeder: "subprocess.Popen[bytes]") -> bytes:
    """Return reply ``k`` and remove its file."""
    path = folder / str(k)
    while not path.exists():
        assert feeder.poll() in (None, 0), "the process that writes replies has ended"
        time.sleep(0.002)
    raw = path.read_bytes()
    path.unlink()
    return raw


def reply(raw: bytes, node: int) -> Message:
    content = recorddict_from_proto(ProtoRecordDict.FromString(raw))
    asked = Message(RecordDict(), dst_node_id=node, message_type="train")
    return Message(content, reply_to=asked)


def peak_of(participants: int) -> int:
    """Return the peak memory of this process in bytes, after a round of ``participants``."""
    keep_memory()  # as the server does
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    network = build_network(_NETWORK, HOMES[_NETWORK])
    params, layouts = network.dump(), network.layouts
    names = names_of(participants)
    awaited = {k: Awaited(1, {name: 1.0}, {name: 16}, layouts) for k, name in enumerate(names)}

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--count", str(participants), "--feed", folder]
        with subprocess.Popen(command) as feeder:
            replies = (reply(taken(Path(folder), k, feeder), k) for k in range(participants))
            order = iter(range(participants))
            collected = collect(replies, awaited, layouts, lambda _: next(order))
    assert len(collected.trained) == participants, collected.refused
    collected.total.mean(params)
    # Not ru_maxrss, which a process inherits from its parent.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def rows() -> Iterator[Row]:
    peaks = {}
    for count in _COUNTS:
        command = [sys.executable, __file__, "--count", str(count)]
        peaks[count] = int(subprocess.check_output(command, text=True))
        yield Row(
            f"{count:,} participants of 2.2 M parameters: peak", f"{peaks[count] / 1e6:.0f} MB"
        )
    network = build_network(_NETWORK, HOMES[_NETWORK])
    model = sum(value.nbytes for value in network.dump().values())
    # Only from where the heap has reached its size; before that it grows by blocks that are kept.
    few, many = _COUNTS[-2:]
    growth = (peaks[many] - peaks[few]) / ((many - few) / 100) / model
    what = f"growth from {few:,} to {many:,}, for each further 100 participants / the model's bytes"
    yield Row(what, f"{growth:.3f}", "", "0.10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, help="print the bytes for one number of participants")
    parser.add_argument("--feed", type=Path, help="write their replies to this folder instead")
    options = parser.parse_args()
    if options.feed is not None:
        feed(options.count, options.feed)
        return
    if options.count is not None:
        print(peak_of(options.count))
        return
    for row in rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()
