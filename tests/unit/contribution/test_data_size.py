from aequa_flwr.contribution import DataSize
from tests.unit.contribution.rounds import a_round, after, opening


def test_data_size_is_what_participants_say() -> None:
    start = opening(2, [30, 7])
    assert after(DataSize(), [a_round(number=2)], start)[1] == [30.0, 7.0]
