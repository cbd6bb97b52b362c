import pytest

from aequa_flwr.settings.behaviour import read_behaviours


def test_behaviours_are_read_in_the_order_of_participants() -> None:
    specs = read_behaviours("flip:0.1, zeros,noise:0.01,honest")
    assert [spec.kind for spec in specs] == ["flip", "zeros", "noise", "honest"]
    assert read_behaviours("") == ()
    with pytest.raises(ValueError, match="unknown behaviour; allowed values are honest; flip:"):
        read_behaviours("lazy")
    with pytest.raises(ValueError, match="FRACTION must be from 0 to 1"):
        read_behaviours("flip:1.5")
