import numpy as np
import pytest

from aequa_flwr.allocation import mean_over_variance


def test_the_objective_is_the_equation_of_the_paper() -> None:
    assert mean_over_variance(0.3, 0.01, 0.02) == pytest.approx(-10.0)
    means, variances = np.array([0.0, 0.3]), np.array([1.0, 0.01])
    assert mean_over_variance(means, variances, 0.02).tolist() == pytest.approx([0.0, -10.0])
