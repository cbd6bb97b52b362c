from aequa_flwr.slim.networks import build_network
from aequa_flwr.training import ServerData, balanced_accuracies
from tests.unit.training.batches import CPU, SCHEMA, batch


def test_server_data_measures_both_sets() -> None:
    network = build_network("small-cnn", SCHEMA)
    both = ServerData(network, CPU, batch(100), batch(60))
    (measured,) = both.measure(network.dump(), (1.0,))
    assert measured.validation == balanced_accuracies(network, (1.0,), batch(100), CPU)[0]
    assert measured.held_out == balanced_accuracies(network, (1.0,), batch(60), CPU)[0]
    (alone,) = ServerData(network, CPU, batch(100), None).measure(network.dump(), (1.0,))
    assert alone.held_out is None
