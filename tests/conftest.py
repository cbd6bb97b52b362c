"""For all tests: prepared data goes into a cache of this session's own."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test ever writes into the user's cache; processes they start inherit this too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AEQUA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
