"""A prepared data set compared with a decoded one: start-up time, memory of several processes.

    python benchmarks/data_cache.py --data-dir DIR [--dataset fashion-mnist]

Linux only.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPEATS = 7
PROCESSES = (1, 2, 4)
# What each process does with the data. "mapped" reads every byte in place; "copied" holds its own
# copy, as every process would without a cache.
WORK = {
    "idle": "",
    "mapped": "data = load_dataset(spec); held = [int(part.x.sum()) for part in parts()]",
    "copied": "data = load_dataset(spec); held = [part.x.copy() for part in parts()]; del data",
}
START = """
import time
began = time.perf_counter()
from aequa_flwr.data import DataSpec, load_dataset
from aequa_flwr.options import Spec
imported = time.perf_counter()
spec = DataSpec({dataset!r}, {data_dir!r}, False, Spec("homogeneous"), 10, 0.05, 1,
                cache_dir={cache_dir!r})
def parts():
    return data.train, data.test
"""
LOAD = "load_dataset(spec); print(time.perf_counter() - imported, imported - began)"
WAIT = "print('ready', flush=True); input()"


def seconds(start: str) -> tuple[float, float]:
    """Return the seconds of loading and of the imports before it, in a new process."""
    command = [sys.executable, "-c", start + LOAD]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    load, imports = done.stdout.split()
    return float(load), float(imports)


def time_starts(start: str) -> None:
    first, _ = seconds(start)
    samples = [seconds(start) for _ in range(REPEATS)]
    low, second, high = statistics.quantiles([load for load, _ in samples], n=4)
    imports = statistics.median(imports for _, imports in samples)
    print(f"first start   {first:9.3f} s   decoded and kept")
    print(f"second start  {second:9.4f} s   ({low:.4f} to {high:.4f})  mapped")
    print(f"              {second + imports:9.3f} s   with the imports of aequa_flwr.data")
    print(f"first / second {first / second:8.0f}")


def proportional_mb(process: subprocess.Popen[str]) -> float:
    """Return the memory of a process, with shared pages counted proportionally (PSS)."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(kb) for kb in re.findall(r"^Pss: +(\d+)", text, re.MULTILINE)) * 1024 / 1e6


def total_mb(start: str, count: int) -> float:
    """Return the memory of ``count`` processes together, while all hold their data."""
    command = [sys.executable, "-c", start]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    total = sum(proportional_mb(process) for process in running)
    for process in running:
        process.communicate("\n")
    return total


def measure_memory(start: str) -> None:
    print("processes   data mapped    data copied    mapped / copied    (sum of PSS above idle)")
    for count in PROCESSES:
        total = {name: total_mb(f"{start}{work}\n{WAIT}", count) for name, work in WORK.items()}
        mapped, copied = total["mapped"] - total["idle"], total["copied"] - total["idle"]
        print(f"{count:9}   {mapped:8.1f} MB    {copied:8.1f} MB    {mapped / copied:15.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--dataset", default="fashion-mnist")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache_dir:
        start = START.format(dataset=asked.dataset, data_dir=asked.data_dir, cache_dir=cache_dir)
        time_starts(start)
        measure_memory(start)


if __name__ == "__main__":
    main()
