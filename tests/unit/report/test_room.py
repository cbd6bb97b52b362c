"""Where the widths leave no room for even gains."""

from dataclasses import replace

from aequa_flwr.methods import Value
from aequa_flwr.report import (
    render_page,
)
from aequa_flwr.report.words import about_measures
from aequa_flwr.results import RunRecord
from tests.unit.report.records import make_record


def crowded(pearson: float) -> RunRecord:
    """A run whose least accurate reward, 0.725, is far above the smallest contribution."""
    record = make_record([0.1, 0.2, 0.7])
    assert record.measures is not None
    return replace(record, measures=replace(record.measures, pearson=pearson))


def test_where_widths_leave_no_room_the_page_says_what_to_change() -> None:
    # The curve begins with 0.95 - 0.4 * 0.75^2 = 0.725; 0.1 + (0.95 - 0.7) = 0.35.
    assert about_measures(crowded(0.8))[1] == (
        "The least accurate reward available reaches 72.50%. For even gains, the smallest "
        "contributor would have to get 35.00%. A p-min below 0.25 (--set p-min=VALUE) makes "
        "narrower rewards available. Rewards may then follow contributions more closely, and the "
        "smallest contributors get less."
    )
    assert "A p-min below 0.25" in render_page(crowded(0.8))


def test_of_room_nothing_is_said_where_it_would_not_help() -> None:
    close, enough = crowded(0.96), make_record([0.6, 0.65, 0.7])
    assert enough.measures is not None
    loose = replace(enough, measures=replace(enough.measures, pearson=0.8))
    others: dict[str, Value] = {"method": "iafl", "allocation": "width", "reward": "earned"}
    elsewhere = [
        replace(crowded(0.8), config={**crowded(0.8).config, key: value})
        for key, value in others.items()
    ]
    scores = replace(crowded(0.8), contribution_unit="score")
    unknown = replace(crowded(0.8), config={"dataset": "digits"})
    for record in (close, loose, scores, unknown, *elsewhere):
        assert "p-min" not in " ".join(about_measures(record))
