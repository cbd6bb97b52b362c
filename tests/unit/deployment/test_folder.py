"""A real federation's folder: everything that is needed, nothing overwritten."""

import tomllib
from pathlib import Path

import pytest

from aequa_flwr.deployment.folder import init_federation
from aequa_flwr.deployment.plan import Plan
from tests.unit.deployment.federation import HOST, Say, contents


def test_init_writes_all_that_operator_server_and_sites_need(aequa: Say, tmp_path: Path) -> None:
    folder = tmp_path / "fed"
    code, out, _ = aequa("init", folder, "--sites", "a,b", "--host", HOST, "--port", "9000")
    assert code == 0
    assert f"a federation at {HOST}:9000 with 2 sites" in out
    assert set(contents(folder)) == {
        "README.md",
        "ca/ca.crt",
        "ca/ca.key",
        "operator/config.toml",
        "operator/register-sites.sh",
        "server/aequa-superexec.service",
        "server/aequa-superlink.service",
        "server/ca.crt",
        "server/server.key",
        "server/server.pem",
        "server/start-superexec.sh",
        "server/start-superlink.sh",
        "server/superexec.secret",
        *(
            f"sites/{site}/{name}"
            for site in "ab"
            for name in (
                "README.md",
                f"{site}.key",
                f"{site}.pub",
                "aequa-supernode.service",
                "ca.crt",
                "start-supernode.sh",
            )
        ),
    }
    connection = tomllib.loads((folder / "operator" / "config.toml").read_text())["superlink"]
    assert connection["aequa"] == {
        "address": f"{HOST}:9000",
        "root-certificates": str(folder / "ca" / "ca.crt"),
    }
    assert aequa("check", folder)[0] == 0


def test_nothing_is_overwritten(aequa: Say, folder: Path) -> None:
    before = contents(folder)
    code, _, err = aequa("init", folder, "--sites", "c", "--host", HOST)
    assert code == 1
    assert "is not empty, and nothing is overwritten" in err
    code, _, err = aequa("add-site", folder, "--sites", "c,B")
    assert code == 1
    assert "The site B exists already" in err
    assert contents(folder) == before


def test_an_empty_folder_is_used_and_a_failure_leaves_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("aequa_flwr.deployment.folder._write_new", full)
        with pytest.raises(OSError, match="No space"):
            init_federation(tmp_path / "deep" / "fed", Plan((HOST,)), ("a",), 10)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(OSError, match="No space"):
            init_federation(tmp_path, Plan((HOST,)), ("a",), 10)
        assert list(tmp_path.iterdir()) == []
    init_federation(tmp_path, Plan((HOST,)), ("a",), 10)
    assert (tmp_path / "README.md").is_file()


def test_adding_a_site_touches_nothing_else(aequa: Say, folder: Path) -> None:
    before = contents(folder)
    (folder / "sites" / ".new-killed").mkdir()
    code, out, _ = aequa("add-site", folder, "--sites", "c", "--sites", "d")
    assert code == 0
    assert "Added 2 sites to" in out
    assert "c, d" in out
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    assert {Path(name).parts[1] for name in after.keys() - before.keys()} == {"c", "d"}
    assert after["sites/c/ca.crt"] == after["ca/ca.crt"]
    assert f"--superlink {HOST}:8000 " in after["sites/c/start-supernode.sh"].decode()
    assert aequa("check", folder)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "https://fed.example.org"], "is a URL"),
        (["--host", "fed.example.org:8000"], "contains a port; give the port with --port"),
        (["--host", "fed example"], "is neither a host name nor an IP address"),
        (["--host", "256.1.1.1"], "is neither a host name nor an IP address"),
        (["--host", "*.example.org"], "is neither a host name nor an IP address"),
        (["--host", "0.0.0.0"], "is not an address that sites can connect to"),
        (["--host", ","], "--host is empty"),
        (["--sites", ","], "--sites is empty"),
        (["--sites", "a,../b"], "The site '../b' cannot be a folder name"),
        (["--sites", "a,b c"], "cannot be a folder name; use letters"),
        (["--sites", "a,A"], "The site A is named twice"),
        (["--port", "0"], "--port 0 is not possible"),
        (["--port", "65536"], "--port 65536 is not possible"),
        (["--days", "0"], "--days 0 is not possible; use 1 to 3650"),
        (["--days", "99999"], "--days 99999 is not possible"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_left(
    aequa: Say, tmp_path: Path, arguments: list[str], says: str
) -> None:
    options = {"--sites": "a", "--host": HOST} | dict(zip(*[iter(arguments)] * 2, strict=True))
    flat = [part for option in options.items() for part in option]
    code, _, err = aequa("init", tmp_path / "fed", *flat)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(aequa: Say, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, _, err = aequa("init", tmp_path / "file" / "fed", "--sites", "a", "--host", HOST)
    assert code == 1
    assert "cannot be created (Not a directory)" in err
    code, _, err = aequa("check", tmp_path)
    assert code == 1
    assert "is not a federation's folder" in err
