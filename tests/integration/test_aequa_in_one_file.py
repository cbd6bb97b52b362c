"""examples/aequa_in_one_file.py gives what the paper promises, and prints it."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from aequa_flwr.contribution import build_estimator
from aequa_flwr.methods import Setup, Standing, find_method

FILE = Path(__file__).parents[2] / "examples" / "aequa_in_one_file.py"


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("aequa_in_one_file", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = load_example()


@pytest.fixture(scope="module")
def ran() -> tuple[str, list[float], Any, Any]:
    """What it printed, the standalone accuracies, and what each algorithm gave."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        standalone, first, second = EXAMPLE.main()
    return printed.getvalue(), standalone, first, second


def test_both_algorithms_reward_what_was_contributed(
    ran: tuple[str, list[float], Any, Any],
) -> None:
    _, standalone, first, second = ran
    for outcome, enough in ((first, 0.9), (second, 0.8)):
        assert np.corrcoef(outcome.accuracies, standalone)[0, 1] > enough
        # The larger contributor never gets the narrower model.
        in_order = np.argsort(outcome.contributions)
        assert (np.diff(np.take(outcome.widths, in_order)) >= 0).all()
    # Algorithm 1 guarantees that nobody loses; for Algorithm 2 it is what is measured here.
    assert min(np.subtract(first.accuracies, standalone)) >= 0
    assert min(np.subtract(second.accuracies, standalone)) > -0.02


def test_algorithm_2_gives_the_widths_of_the_library(
    ran: tuple[str, list[float], Any, Any],
) -> None:
    """Equation 5 in one line is the rule of a real run."""
    second = ran[3]
    ladder = EXAMPLE.make_network().ladder(EXAMPLE.P_MIN, EXAMPLE.P_MAX)
    setup = Setup(ladder, build_estimator("cgsv"), None, gamma=EXAMPLE.GAMMA, nu=1.0)
    method = find_method("aequa", "training-time").build(setup)
    contributions = {str(i): c for i, c in enumerate(second.contributions)}
    assert second.widths == list(method.receives(contributions, Standing(contributions)).values())
    assert max(second.widths) == ladder[-1]


def test_it_prints_who_got_what(ran: tuple[str, list[float], Any, Any]) -> None:
    printed = ran[0]
    for title in ("Algorithm 1", "Algorithm 2"):
        assert title in printed
    assert printed.count("Pearson") == 2
    assert len(re.findall(r"[+-]\d+\.\d pp", printed)) == 2 * EXAMPLE.N
