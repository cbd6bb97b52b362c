import pytest
from sklearn.metrics import recall_score

from aequa_flwr.data import Examples
from aequa_flwr.slim.networks import build_network
from aequa_flwr.training import balanced_accuracies
from tests.unit.training.batches import CPU, SCHEMA, tensors


def test_accuracy_is_scikit_learns_mean_recall_at_every_width() -> None:
    network, (x, y) = build_network("small-cnn", SCHEMA), tensors(700)
    y[y == 3] = 4  # a class without examples does not count
    widths = network.ladder(0.25, 1.0)
    got = balanced_accuracies(
        network, widths, CPU.resident(Examples(x.numpy(), y.numpy()), SCHEMA), CPU
    )
    for width, accuracy in zip(widths, got, strict=True):
        predicted = network(x, width).argmax(1)
        expected = recall_score(y, predicted, labels=sorted(set(y.tolist())), average="macro")
        assert accuracy == pytest.approx(expected, abs=1e-9)
