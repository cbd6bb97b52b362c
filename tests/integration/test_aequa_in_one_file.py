"""examples/aequa_in_one_file.py gives what the paper promises, and says so."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from aequa_flwr.contribution import build_estimator
from aequa_flwr.methods import Setup, find_method

FILE = Path(__file__).parents[2] / "examples" / "aequa_in_one_file.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("aequa_in_one_file", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_algorithms_reward_what_was_contributed(
    example: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    standalone, first, second = example.main()
    printed = capsys.readouterr().out
    for outcome, enough in ((first, 0.9), (second, 0.8)):
        assert np.corrcoef(outcome.accuracies, standalone)[0, 1] > enough
        # The larger contributor never gets the narrower model.
        in_order = np.argsort(outcome.contributions)
        assert (np.diff(np.take(outcome.widths, in_order)) >= 0).all()
    # Algorithm 1 guarantees that nobody loses; for Algorithm 2 it is what is measured here.
    assert min(np.subtract(first.accuracies, standalone)) >= 0
    assert min(np.subtract(second.accuracies, standalone)) > -0.02
    for title in ("Algorithm 1", "Algorithm 2"):
        assert title in printed
    assert printed.count("Pearson") == 2
    assert len(re.findall(r"[+-]\d+\.\d pp", printed)) == 2 * example.N


def test_algorithm_2_gives_the_widths_of_the_library(example: ModuleType) -> None:
    """Equation 5 in one line is the rule of a real run."""
    _, _, second = example.main()
    ladder = example.make_network().ladder(example.P_MIN, example.P_MAX)
    setup = Setup(ladder, build_estimator("cgsv"), None, gamma=0.5, nu=1.0)
    method = find_method("aequa", "training-time").build(setup)
    contributions = {str(i): c for i, c in enumerate(second.contributions)}
    expected = method.receives(contributions, contributions)
    assert second.widths == list(expected.values())
    assert max(second.widths) == ladder[-1]
    assert set(second.widths) <= set(ladder)
