import pytest

from aequa_flwr.seeding import rng_for

OTHERS: list[tuple[int, tuple[str | int, ...]]] = [
    (2, ("local", 3, "a")),
    (1, ("local", 4, "a")),
    (1, ("local", 3, "b")),
    (1, ("local", "3", "a")),
    (1, ("local", 3)),
    (1, ("local3", "a")),
]


def test_stream_is_the_same_on_every_machine() -> None:
    first = rng_for(1, "local", 3, "a").integers(2**31, size=3).tolist()
    assert first == [837686270, 864648313, 1178363169]


@pytest.mark.parametrize(("seed", "scope"), OTHERS)
def test_any_other_seed_or_scope_gives_another_stream(
    seed: int, scope: tuple[str | int, ...]
) -> None:
    here = rng_for(1, "local", 3, "a").integers(2**62)
    assert rng_for(seed, *scope).integers(2**62) != here
