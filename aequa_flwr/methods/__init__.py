"""Methods: who receives what each round, and what everybody ends with."""

from aequa_flwr.methods.aequa import Aequa

__all__ = ["Aequa"]
