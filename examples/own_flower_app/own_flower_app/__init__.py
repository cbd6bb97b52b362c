"""A Flower app with its own data and network, and fair rewards by aequa-flwr."""
