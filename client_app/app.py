"""The ClientApp: `aequa_flwr.federation.Node` answers every message from the server."""

from aequa_flwr.federation import make_client_app

app = make_client_app()
