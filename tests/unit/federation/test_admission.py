"""A part of a round counts only if it is what the node was asked for."""

import pytest

from aequa_flwr.federation.admission import decode_asked
from aequa_flwr.federation.codec import decode_round_part, encode_round_part
from aequa_flwr.federation.reading import WireError
from tests.unit.federation.parts import (
    INDIVIDUAL_WIDTH,
    LAYOUTS,
    Damage,
    awaited,
    edit,
    part_of,
    same_params,
    through_bytes,
    with_individual,
)

# Whole parts that are not the answer to what was asked.
NOT_ASKED: list[tuple[Damage, str]] = [
    (edit(server_round=2), "the reply is to round 2, not 3"),
    (edit(names=["a", "x"]), "about other participants than those in the task"),
    (edit(widths=[1.0, 1.0]), "another width than it was asked to"),
    (edit(num_examples=[10, 0]), "b reports 0 examples, but joined with 10"),
    (edit(num_examples=[10**12, 10]), "a reports 1000000000000 examples"),
    (edit(losses=[0.1, float("nan")]), "the loss of b is not a finite number"),
    (edit(sum_weights=[1, 2]), "weight of a participant in the sum is not the agreed one"),
]


@pytest.mark.parametrize(("damage", "says"), NOT_ASKED)
def test_what_nobody_asked_for_is_refused(damage: Damage, says: str) -> None:
    asked = {"a": 0.5, "b": 1.0}
    content = encode_round_part(part_of(asked))
    damage(content)
    with pytest.raises(WireError, match=says):
        decode_asked(content, awaited(asked))


@pytest.mark.parametrize("damage", [damage for damage, _ in NOT_ASKED])
def test_nothing_is_wrong_with_such_a_part_itself(damage: Damage) -> None:
    content = encode_round_part(part_of({"a": 0.5, "b": 1.0}))
    damage(content)
    assert decode_round_part(content, LAYOUTS, None).partial.count == 2


def test_individual_sub_models_come_with_the_part_if_they_were_asked_for() -> None:
    asked = {"a": 0.5, "b": 1.0}
    part = with_individual(asked)
    content = through_bytes(encode_round_part(part))
    back = decode_asked(content, awaited(asked, individual_width=INDIVIDUAL_WIDTH))
    assert all(same_params(back.individual[name], part.individual[name]) for name in asked)
    assert decode_asked(content, awaited(asked)).individual == {}
