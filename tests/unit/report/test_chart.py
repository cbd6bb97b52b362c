"""Axes with round numbers, and labels that do not touch."""

import re

import pytest

from aequa_flwr.report.chart import Chart, axis


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.6, 0.9], ["60%", "70%", "80%", "90%"]),
        ([0.9], ["89%", "90%", "91%"]),
        ([], ["0%", "20%", "40%", "60%", "80%", "100%"]),
    ],
)
def test_axes_have_round_numbers(values: list[float], texts: list[str]) -> None:
    assert [text for _, text in axis("", values).ticks] == texts


def test_rounds_are_whole_numbers() -> None:
    assert [t for _, t in axis("", [1, 2, 3], least_step=1, unit="").ticks] == ["1", "2", "3"]
    assert [t for _, t in axis("", [0.25, 1], unit="").ticks] == ["0.4", "0.6", "0.8", "1.0"]


@pytest.mark.parametrize(
    ("values", "least_step", "texts"),
    [
        ([1000, 3000], 1, ["1,000", "1,500", "2,000", "2,500", "3,000"]),
        ([0.004, 0.0043], 1e-6, ["0.0040", "0.0041", "0.0042", "0.0043"]),
        ([1e-9, 3e-9], 1e-12, ["1e-09", "1.5e-09", "2e-09", "2.5e-09", "3e-09"]),
        ([2e12], 1e12, ["1e+12", "2e+12", "3e+12"]),
        ([-0.2, 0.2], 0.01, ["-0.2", "-0.1", "0.0", "0.1", "0.2"]),
    ],
)  # fmt: skip
def test_axes_have_numbers_of_any_size(
    values: list[float], least_step: float, texts: list[str]
) -> None:
    ticks = axis("", values, least_step=least_step, unit="").ticks
    assert [text for _, text in ticks] == texts


def test_long_labels_leave_room_for_each_other() -> None:
    wide = axis("", [1_000_000, 6_600_000], least_step=1, unit="")
    assert len(wide.ticks) == 6
    text = Chart(wide, axis("", [0, 1])).svg("", [])
    labelled = [label for _, label in wide.ticks if f">{label}<" in text]
    assert labelled == ["1,000,000", "3,000,000", "5,000,000"]
    # Half of the last label would be beyond the drawing, which is 440 wide.
    text = Chart(axis("", [0, 6_000_000], unit=""), axis("", [0, 1])).svg("", [])
    place = re.search(r'x="([\d.]+)" y="\d+">6,000,000<', text)
    assert place is not None
    assert float(place[1]) + 7 * 9 / 2 <= 440
