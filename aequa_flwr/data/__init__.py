"""Data: sources (name or folder to arrays), partition (labels to indices per participant)."""

from aequa_flwr.data.federation import FederatedData, federated_data, participant_names
from aequa_flwr.data.partition import partition
from aequa_flwr.data.sources import DataError, Dataset, Examples, load_dataset, split_by_class

__all__ = [
    "DataError",
    "Dataset",
    "Examples",
    "FederatedData",
    "federated_data",
    "load_dataset",
    "participant_names",
    "partition",
    "split_by_class",
]
