import platform
import subprocess
import sys

import pytest
import torch

from aequa_flwr.training import DeviceError, choose_compute


def test_a_device_that_is_not_there_is_refused() -> None:
    missing = "mps" if not torch.backends.mps.is_available() else "cuda"
    with pytest.raises(DeviceError, match="is not available here; choose from"):
        choose_compute(missing, "float32")


_ALLOCATES = """
import resource, sys, torch
from aequa_flwr.training import keep_memory
if sys.argv[1] == "keeps":
    keep_memory()
for _ in range(3):  # until the heap has the room
    torch.ones(2**24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(40):
    torch.ones(2**24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep it or not")
def test_memory_that_is_kept_is_not_fetched_again() -> None:
    fetched = {
        how: int(subprocess.check_output([sys.executable, "-c", _ALLOCATES, how], text=True))
        for how in ("keeps", "returns")
    }
    # 64 MB each time are 16,384 pages. A kept heap may still grow once or twice when a small
    # allocation sits where a large one was.
    assert fetched["returns"] >= 40 * 16_000, fetched
    assert fetched["keeps"] <= fetched["returns"] / 10, fetched
