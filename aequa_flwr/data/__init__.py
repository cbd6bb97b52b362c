"""Data: sources (name or folder to arrays), partition (labels to indices per participant)."""

from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices, split_by_class
from aequa_flwr.data.federation import FederatedData, federated_data, participant_names
from aequa_flwr.data.partition import partition
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.sources import load_dataset

__all__ = [
    "DataError",
    "Dataset",
    "Examples",
    "FederatedData",
    "Indices",
    "Schema",
    "federated_data",
    "load_dataset",
    "participant_names",
    "partition",
    "split_by_class",
]
