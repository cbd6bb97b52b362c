import numpy as np

from tests.unit.data_files import load


def test_digits_are_1797_images_with_a_fixed_test_split() -> None:
    digits = load("digits")
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    assert digits.schema.shape == (1, 8, 8)
    x = digits.train.x / 255
    assert abs(x.mean() - digits.schema.mean[0]) < 0.01
    assert abs(x.std() - digits.schema.std[0]) < 0.01
    # The split of the first release: runs of all versions are measured on the same examples.
    assert int(digits.test.x.astype(np.int64).sum()) == DIGITS_TEST_SUM


DIGITS_TEST_SUM = 1_797_900
