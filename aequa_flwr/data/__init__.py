"""Data: sources (name or folder to arrays), partition (labels to indices per participant)."""

from aequa_flwr.data.cache import cache_folder
from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices, split_by_class
from aequa_flwr.data.federation import FederatedData, federated_data, participant_names
from aequa_flwr.data.loading import found_in, load_dataset, site_data
from aequa_flwr.data.partition import partition
from aequa_flwr.data.saying import Say, quiet
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.schema_file import SCHEMA_FILE, load_schema, save_schema
from aequa_flwr.data.vocabulary import encode_text

__all__ = [
    "SCHEMA_FILE",
    "DataError",
    "Dataset",
    "Examples",
    "FederatedData",
    "Indices",
    "Say",
    "Schema",
    "cache_folder",
    "encode_text",
    "federated_data",
    "found_in",
    "load_dataset",
    "load_schema",
    "participant_names",
    "partition",
    "quiet",
    "save_schema",
    "site_data",
    "split_by_class",
]
