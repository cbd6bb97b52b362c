"""Methods: what each participant receives in a round, how replies fold, what each ends with."""

from aequa_flwr.methods.attendance import PARTICIPATIONS, Attendance, read_participation
from aequa_flwr.methods.method import About, Kind, Method, Models, Setup, Standing, Value
from aequa_flwr.methods.registry import METHODS, MethodError, about_method, find_method

__all__ = [
    "METHODS",
    "PARTICIPATIONS",
    "About",
    "Attendance",
    "Kind",
    "Method",
    "MethodError",
    "Models",
    "Setup",
    "Standing",
    "Value",
    "about_method",
    "find_method",
    "read_participation",
]
