from aequa_flwr.allocation import Room, room_for_even_gains


def test_the_room_for_even_gains_is_the_papers_assumption() -> None:
    # l <= c_1 + (u - c_N): 0.25 + (1.0 - 0.75) = 0.5.
    contributions = [0.75, 0.25, 0.375]
    enough = room_for_even_gains(contributions, [0.625, 0.5, 1.0])
    assert enough == Room(lowest=0.5, needed=0.5)
    assert enough.is_enough
    wide = room_for_even_gains(contributions, [0.625, 1.0])
    assert wide == Room(lowest=0.625, needed=0.5)
    assert not wide.is_enough


def test_who_is_above_every_level_needs_no_room_and_without_anybody_there_is_none() -> None:
    assert room_for_even_gains([0.5, 0.625, 0.99], [0.5, 0.75]) == Room(0.5, 0.625)
    assert room_for_even_gains([0.9], [0.6, 0.8]) is None
    assert room_for_even_gains([], [0.6]) is None
    assert room_for_even_gains([0.5], []) is None
