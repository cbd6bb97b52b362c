"""A participant's own data, for the tests of its three sources."""

from pathlib import Path

from aequa_flwr.data import Dataset, site_data

CLASSES = ("ant", "bee", "cat")


def site(name: str, folder: Path) -> Dataset:
    return site_data(name, str(folder), cache_dir="", max_length=60).dataset
