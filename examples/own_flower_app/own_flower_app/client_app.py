"""The ClientApp: a participant's own data and network; training and messages are aequa-flwr's."""

from flwr.app import Context

from aequa_flwr import make_client_app
from own_flower_app.task import Examples, load_participant, make_network


def load_data(context: Context) -> Examples:
    """Return this node's images and labels; a real node would read its own files here."""
    return load_participant(int(context.node_config["partition-id"]))


app = make_client_app(load_data, make_network)
