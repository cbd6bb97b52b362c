"""Time of a simulated round relative to a plain PyTorch loop with the same training steps.

    python benchmarks/simulated.py [--repeats 3]

60,000 generated images of 28 x 28 are split evenly among 10 and among 3,597 participants, and as
unevenly as MNIST's writers among 539. The CNN trains at full width only, which is FedAvg. `aequa
run` with one node per core alternates with the plain loop with one process per core. Also
measured: one node per participant relative to one node per core, and the time to the end of the
first round.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from plain_loop import Images, Labels, plain_loop
from ratio import Row, ratio_row, seconds

from aequa_flwr.data import Schema, save_schema
from aequa_flwr.results import PROGRESS_FILE

_AEQUA = Path(sys.executable).parent / "aequa"
_IMAGES, _BATCH = 60_000, 128
_SCHEMA = Schema.numbered("images", (1, 28, 28), 10)
_POLL_S = 0.01
# Numbers of participants, and the goal for each ratio.
_FEDERATIONS = {10: "1.15", 539: "1.15", 3_597: "1.30"}


def sizes_of(participants: int) -> list[int]:
    """Return the number of images of each participant: equal, or for 539 spread like writers."""
    if participants != 539:
        return [len(part) for part in np.array_split(np.arange(_IMAGES), participants)]
    shares = np.random.default_rng(1).lognormal(sigma=0.4, size=participants)
    ends = np.rint(np.cumsum(shares) / shares.sum() * _IMAGES).astype(int)
    return [int(size) for size in np.diff(ends, prepend=0)]


def write_data(folder: Path, sizes: list[int]) -> tuple[Images, Labels, Labels]:
    """Write random images of participants with these ``sizes``; return images, labels, groups."""
    rng = np.random.default_rng(2)
    count = sum(sizes)
    x = rng.integers(0, 256, (count + 500, *_SCHEMA.shape), dtype=np.uint8)
    y = rng.integers(0, 10, count + 500)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    folder.mkdir()
    np.savez(folder / "train.npz", x=x[:count], y=y[:count], groups=groups)
    np.savez(folder / "test.npz", x=x[count:], y=y[count:])
    save_schema(folder / "schema.json", _SCHEMA)
    return x[:count], y[:count], groups


def round_ends(
    data: Path, participants: int, rounds: int, *options: str
) -> tuple[float, list[float]]:
    """Return the seconds to the end of the first round of `aequa run`, and of each later round."""
    with tempfile.TemporaryDirectory() as top:
        progress = Path(top) / "run" / PROGRESS_FILE
        start = time.perf_counter()
        process = subprocess.Popen(
            [
                *(str(_AEQUA), "run", "--dataset", "arrays", "--data-dir", str(data)),
                *("--network", "cnn", "--partition", "natural", "--contribution", "data-size"),
                *("--participants", str(participants), "--rounds", str(rounds)),
                *("--set", "p-min=1", "--set", f"batch-size={_BATCH}"),
                *("--cache-dir", f"{data}-cache", "--output", str(progress.parent), *options),
            ],
            stdout=subprocess.DEVNULL,
        )
        ends: list[float] = []
        while process.poll() is None:
            text = progress.read_text() if progress.exists() else ""
            count = sum(
                '"training"' in line and '"done": 0' not in line for line in text.splitlines()
            )
            ends += [time.perf_counter() - start] * (count - len(ends))
            time.sleep(_POLL_S)
        if process.returncode:
            raise SystemExit(f"aequa run ended with {process.returncode}")
        record = json.loads((progress.parent / "record.json").read_text())
        assert not record["failures"], record["failures"]
    return ends[0], np.diff(ends).tolist()


def rows(repeats: int) -> Iterator[Row]:
    workers = len(os.sched_getaffinity(0))
    for participants, goal in _FEDERATIONS.items():
        with tempfile.TemporaryDirectory() as top:
            data = Path(top) / "data"
            x, y, groups = write_data(data, sizes_of(participants))
            ours, plain, firsts = [], [], []
            with plain_loop(x, y, groups, _SCHEMA, workers=workers, batch=_BATCH) as loop:
                loop.round()
                for _ in range(repeats):
                    first, others = round_ends(data, participants, 4)
                    firsts.append(first)
                    ours.append(median(others))
                    plain.append(median(seconds(loop.round) for _ in range(3)))
        what = f"{participants:,} participants: a simulated round / a plain PyTorch loop's"
        yield ratio_row(what, ours, plain, goal)
        yield Row(
            f"{participants:,} participants: a simulated round; start to end of the first round",
            f"{median(ours):.1f} s, {median(firsts):.0f} s",
        )


def hosting_rows(repeats: int, participants: int = 100) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as top:
        data = Path(top) / "data"
        write_data(data, [60] * participants)
        hosted, single = [], []
        for _ in range(repeats):
            hosted.append(median(round_ends(data, participants, 4)[1]))
            options = ("--nodes", str(participants))
            single.append(median(round_ends(data, participants, 4, *options)[1]))
    what = f"{participants} participants of 60 images: one node each / a node for each core"
    yield ratio_row(what, single, hosted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for row in (*rows(options.repeats), *hosting_rows(options.repeats)):
        print(row, flush=True)


if __name__ == "__main__":
    main()
