"""Data: from a name, a folder or arrays to examples, who holds which, and what the task is."""

from aequa_flwr.data.arrays import Arrays, describe, examples_of_pair
from aequa_flwr.data.cache import cache_folder
from aequa_flwr.data.examples import (
    DataError,
    Dataset,
    Examples,
    Indices,
    no_examples,
    split_by_class,
)
from aequa_flwr.data.federation import (
    FederatedData,
    federate_arrays,
    federated_data,
    participant_names,
)
from aequa_flwr.data.loading import found_in, load_dataset, site_data
from aequa_flwr.data.partition import PARTITIONS, partition, read_partition
from aequa_flwr.data.saying import Say, quiet
from aequa_flwr.data.schema import Kind, Schema
from aequa_flwr.data.schema_file import SCHEMA_FILE, load_schema, save_schema
from aequa_flwr.data.sources import check_examples
from aequa_flwr.data.spec import DataSpec
from aequa_flwr.data.task import CLASSIFICATION, TASKS, Task, num_outputs, task_of
from aequa_flwr.data.vocabulary import encode_text

__all__ = [
    "CLASSIFICATION",
    "PARTITIONS",
    "SCHEMA_FILE",
    "TASKS",
    "Arrays",
    "DataError",
    "DataSpec",
    "Dataset",
    "Examples",
    "FederatedData",
    "Indices",
    "Kind",
    "Say",
    "Schema",
    "Task",
    "cache_folder",
    "check_examples",
    "describe",
    "encode_text",
    "examples_of_pair",
    "federate_arrays",
    "federated_data",
    "found_in",
    "load_dataset",
    "load_schema",
    "no_examples",
    "num_outputs",
    "participant_names",
    "partition",
    "quiet",
    "read_partition",
    "save_schema",
    "site_data",
    "split_by_class",
    "task_of",
]
