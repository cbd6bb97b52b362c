from aequa_flwr.allocation import Headroom, headroom


def test_the_room_for_even_gains_is_the_papers_assumption() -> None:
    # l <= c_1 + (u - c_N): 0.25 + (1.0 - 0.75) = 0.5.
    contributions = [0.75, 0.25, 0.375]
    enough = headroom(contributions, [0.625, 0.5, 1.0])
    assert enough == Headroom(lowest=0.5, needed=0.5)
    assert enough.is_enough
    wide = headroom(contributions, [0.625, 1.0])
    assert wide == Headroom(lowest=0.625, needed=0.5)
    assert not wide.is_enough


def test_who_is_above_every_level_needs_no_room_and_without_anybody_there_is_none() -> None:
    assert headroom([0.5, 0.625, 0.99], [0.5, 0.75]) == Headroom(0.5, 0.625)
    assert headroom([0.9], [0.6, 0.8]) is None
    assert headroom([], [0.6]) is None
    assert headroom([0.5], []) is None
