"""p-min = auto: the narrowest width follows the contributions that are known before training."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.in_process import record_of, run_in_process, run_interrupted

# Participants whose standalone accuracies lie far more than five points apart.
SKEWED: dict[str, Any] = {
    "partition": "quantity-skew:0.4,2", "participants": 5, "rounds": 4, "num_nodes": 2,
}  # fmt: skip


def test_even_gains_get_narrower_rewards_where_contributions_lie_far_apart(tmp_path: Path) -> None:
    run_in_process(tmp_path / "auto", objective="even", **SKEWED)
    run_in_process(tmp_path / "given", objective="even", p_min=0.1, **SKEWED)
    auto, given = record_of(tmp_path / "auto"), record_of(tmp_path / "given")
    assert auto["config"] == given["config"]
    assert auto["config"]["p-min"] == 0.1
    assert auto["curve"][0]["width"] < 0.2
    for part in ("participants", "measures", "exposed", "curve", "rounds"):
        assert auto[part] == given[part]


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "proportional"},
        {"objective": "even", "contribution": "cgsv"},  # known by the rounds only
        {"objective": "even", "contribution": "data-size"},  # no accuracy
    ],
)
def test_elsewhere_the_narrowest_width_is_the_papers(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    run_in_process(tmp_path / "run", **SKEWED | {"rounds": 2} | settings)
    record = record_of(tmp_path / "run")
    assert record["config"]["p-min"] == 0.25
    assert record["curve"][0]["width"] >= 0.25


def test_resumed_it_has_the_same_widths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SKEWED | {"objective": "even"}
    run_in_process(tmp_path / "whole", **settings)
    run_interrupted(tmp_path / "again", monkeypatch, in_round=3, **settings)
    whole, again = record_of(tmp_path / "whole"), record_of(tmp_path / "again")
    for part in ("config", "participants", "measures", "exposed", "curve", "rounds"):
        assert again[part] == whole[part]
