"""Who is in a federation, and where its server listens."""

import pytest

from aequa_flwr.deployment.plan import Plan, parse_hosts, parse_sites
from tests.unit.deployment.federation import HOST


def test_hosts_and_sites_are_read_from_lists() -> None:
    assert parse_hosts(["A.Example.org, 10.0.0.7", "::1", "10.0.0.7"]) == (
        "a.example.org",
        "10.0.0.7",
        "::1",
    )
    assert parse_sites(["a, b", "c"]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("hosts", "address", "local", "listens_on"),
    [
        ((HOST,), f"{HOST}:8000", f"{HOST}:8000", "0.0.0.0"),
        ((HOST, "127.0.0.1"), f"{HOST}:8000", "127.0.0.1:8000", "0.0.0.0"),
        (("127.0.0.1",), "127.0.0.1:8000", "127.0.0.1:8000", "127.0.0.1"),
        (("localhost",), "localhost:8000", "localhost:8000", "127.0.0.1"),
        (("2001:db8::7",), "[2001:db8::7]:8000", "[2001:db8::7]:8000", "::"),
    ],
)
def test_where_to_listen_and_connect(
    hosts: tuple[str, ...], address: str, local: str, listens_on: str
) -> None:
    plan = Plan(hosts)
    assert (plan.address, plan.local_address, plan.listens_on) == (address, local, listens_on)
