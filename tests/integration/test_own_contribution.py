"""A user's own contribution method: taken as it is, or refused with what is wrong with it."""

import re
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.contribution import ContributionError, build_estimator
from aequa_flwr.options import IMPORT_PATH
from tests.integration.in_process import record_of, run_in_process

GOOD = """
import numpy as np
from aequa_flwr.contribution import Needs


class Method:
    needs = Needs(updates=True)
    unit = "score"
    changes = True

    def begin(self, opening):
        return {"total": np.zeros(len(opening.num_examples))}

    def after_round(self, ledger, evidence):
        total = ledger["total"].copy()
        squares = [np.square(u).reshape(len(u), -1).sum(axis=1) for u in evidence.updates.values()]
        total[evidence.present] += np.sqrt(sum(squares))
        return {"total": total}

    def contributions(self, ledger):
        return ledger["total"]
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a class in a module of its own, as Python keeps what it has imported."""
    text = getattr(request, "param", GOOD)
    module = f"own_method_{abs(hash((text, str(tmp_path))))}"
    (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv(IMPORT_PATH, str(tmp_path))
    return f"{module}:Method"


def test_a_whole_run_is_rewarded_by_that_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "your-own.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# my_methods\.py.*?)```", page, flags=re.DOTALL)
    (tmp_path / "my_methods.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv(IMPORT_PATH, str(tmp_path))
    run_in_process(
        tmp_path / "run",
        num_nodes=2,
        contribution="my_methods:LongestUpdates",
        measure_alone=True,
        rounds=2,
        behaviour="honest,zeros",
    )
    record = record_of(tmp_path / "run")
    assert record["contribution_unit"] == "score"
    contributions = {line["name"]: line["contribution"] for line in record["participants"]}
    idle = contributions.pop("participant-02")
    assert idle < 1e-6  # rounding
    assert min(contributions.values()) > 0.0
    widths = {line["name"]: line["width"] for line in record["participants"]}
    assert widths["participant-02"] == min(widths.values())


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (GOOD.replace("Needs(updates=True)", "None"), "has no needs"),
        (GOOD.replace('"score"', '"points"'), "unit = 'points'; use one of accuracy"),
        (GOOD.replace("changes = True", "changes = None"), "has no changes"),
        (GOOD.replace('return ledger["total"]', "return ledger"), "not one number for each"),
        (GOOD.replace('return {"total": total}', 'return {"total": 3}'), "after_round whose led"),
        (GOOD.replace("np.zeros(len", "np.zeros(2 + len"), "fails on a small federation: |not one"),
        (GOOD.replace('ledger["total"].copy()', "1 / 0"), "ZeroDivisionError"),
        (GOOD.replace("class Method:", "def Method(x): pass\nclass A:"), "missing 1"),
        (GOOD.replace("class Method", "class Other"), "cannot be imported"),
        ("raise SystemExit(3)", "cannot be imported"),
    ],
    indirect=["written"],
)  # fmt: skip
def test_what_is_wrong_is_said_before_the_run(written: str, says: str) -> None:
    with pytest.raises(ContributionError, match=says) as error:
        build_estimator(written)
    assert written in str(error.value)
    assert str(error.value).endswith(".")


def test_what_can_be_said_of_nobody_is_allowed(written: str) -> None:
    estimator = build_estimator(written)
    assert np.array_equal(estimator.contributions({"total": np.ones(3)}), np.ones(3))
