"""Who is told how a run goes: TensorBoard's files, and a tracker of the user's own."""

from aequa_flwr.tracking.tracker import (
    Tracker,
    TrackerError,
    Trackers,
    check_trackers,
    load_trackers,
)

__all__ = ["Tracker", "TrackerError", "Trackers", "check_trackers", "load_trackers"]
