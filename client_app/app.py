"""The ClientApp: `aequa_flwr.federation.Node` decodes a message, trains or stores, and answers."""

from aequa_flwr.federation import make_client_app

app = make_client_app()
