"""Whether the narrowest width was narrow enough for everybody to gain alike."""

from aequa_flwr.allocation import Headroom, headroom
from aequa_flwr.report.method import about
from aequa_flwr.report.tables import percent
from aequa_flwr.results import RunRecord

# From here on rewards follow contributions very closely: nothing is gained by more room.
CLOSE = 0.95


def chosen_by_accuracy(record: RunRecord) -> bool:
    """Return whether widths were chosen by what each of them reaches on the validation data."""
    # Records of version 1 knew no other way.
    return record.config.get("allocation", "accuracy") == "accuracy"


def headroom_of(record: RunRecord) -> Headroom | None:
    """Return the room that the curve of a run had; None where widths were not chosen by it.

    Contributions that are no accuracies are laid along the curve, which always has room then.
    """
    comparable = chosen_by_accuracy(record) and record.contribution_unit == "accuracy"
    if not about(record).sub_networks or not comparable:
        return None
    levels = [point.accuracy for point in record.curve if point.accuracy is not None]
    brought = [p.contribution for p in record.participants if p.contribution is not None]
    return headroom(brought, levels)


def about_headroom(record: RunRecord) -> str:
    """Return what to try where gains could not be alike and the correlation shows it."""
    room, measures = headroom_of(record), record.measures
    if room is None or room.is_enough or measures is None or measures.pearson is None:
        return ""
    helps = about(record).needs_room and "p-min" in record.config
    if measures.pearson >= CLOSE or not helps:
        return ""
    return (
        f"The least accurate reward available reaches {percent(room.lowest)}. For even gains, the "
        f"smallest contributor would have to get {percent(max(0.0, room.needed))}. A p-min below "
        f"{record.config.get('p-min')} (--set p-min=VALUE) makes narrower rewards available. "
        "Rewards may then follow contributions more closely, and the smallest contributors get "
        "less."
    )
