"""What identifies the data of a simulated federation."""

from dataclasses import dataclass

from aequa_flwr.options import Spec


@dataclass(frozen=True)
class DataSpec:
    """Which data a simulated federation has and how it is split."""

    dataset: str
    data_dir: str
    download: bool
    partition: Spec
    participants: int
    held_out_fraction: float
    seed: int
    cache_dir: str = ""
    max_length: int = 60
    validation: bool = True
