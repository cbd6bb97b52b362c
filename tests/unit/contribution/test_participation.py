from aequa_flwr.contribution import Participation
from tests.unit.contribution.rounds import a_round, after, opening


def test_participation_is_the_share_of_rounds_joined() -> None:
    assert after(Participation(), [], opening(3))[1] == [0.0, 0.0, 0.0]
    rounds = [a_round(number=3, present=here) for here in ([0, 1], [0], [], [0, 1])]
    assert after(Participation(), rounds, opening(3))[1] == [0.75, 0.5, 0.0]
