"""Tests that run the apps in this process build Flower's messages in it, too."""

from collections.abc import Iterator

import pytest

from aequa_flwr.simulation import as_flower_task


@pytest.fixture(scope="session", autouse=True)
def flower_task() -> Iterator[None]:
    """Give this process the identity that a Message asks for."""
    with as_flower_task():
        yield
