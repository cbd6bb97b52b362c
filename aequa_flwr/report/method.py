"""What there is to know of the method of a run."""

from aequa_flwr.methods import About, about_method
from aequa_flwr.results import RunRecord


def about(record: RunRecord) -> About:
    """Return the facts of the method that made ``record``."""
    # Records of version 1 know no other method than Aequa.
    method, reward = record.config.get("method", "aequa"), record.config.get("reward", "")
    return about_method(str(method), str(reward))
