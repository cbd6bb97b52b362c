"""`aequa federation check`: which file is wrong, and what to do."""

import shutil
from pathlib import Path

import pytest

from aequa_flwr.deployment.folder import init_federation
from aequa_flwr.deployment.plan import Plan
from tests.unit.deployment.federation import HOST, Say


def test_a_server_for_another_host_is_named_with_the_remedy(aequa: Say, folder: Path) -> None:
    script = folder / "sites" / "a" / "start-supernode.sh"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace(HOST, "new.example.org"), encoding="utf-8")
    code, out, _ = aequa("check", folder)
    assert code == 1
    hosts = f"new.example.org,{HOST},10.0.0.7"
    assert (
        f"WRONG  server/server.pem is for {HOST}, 10.0.0.7, but sites/a/start-supernode.sh "
        f"connects to new.example.org; run `aequa federation renew DIR --host {hosts}`"
    ) in out
    assert aequa("renew", folder, "--host", hosts)[0] == 0
    assert aequa("check", folder)[0] == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ca/ca.crt", "ca/ca.crt is not a certificate in PEM format"),
        ("ca/ca.key", "ca/ca.key is not a private key in PEM format"),
        ("server/server.pem", "server/server.pem is not a certificate in PEM format"),
        ("server/server.key", "server/server.key is not a private key in PEM format"),
        ("server/ca.crt", "server/ca.crt is not a certificate in PEM format"),
        ("server/start-superexec.sh", "has no --runtime-api-address HOST:PORT"),
        ("sites/a/a.key", "sites/a/a.key is not an ECDSA key in OpenSSH format"),
        ("sites/a/a.pub", "sites/a/a.pub is not the public key of sites/a/a.key"),
        ("sites/a/ca.crt", "sites/a/ca.crt is not a certificate in PEM format"),
        ("sites/a/start-supernode.sh", "has no --superlink HOST:PORT"),
    ],
)
def test_check_says_which_file_is_broken(aequa: Say, folder: Path, name: str, says: str) -> None:
    (folder / name).write_text("broken", encoding="utf-8")
    code, out, _ = aequa("check", folder)
    assert code == 1
    assert says in out
    (folder / name).unlink()
    code, out, _ = aequa("check", folder)
    if name.endswith("ca.key"):  # kept off line
        assert code == 0
        assert "ca/ca.key is not here" in out
    elif name.endswith("a.key"):  # handed over
        assert code == 0
        assert "sites/a/a.key is not here; only the site has it" in out
    else:
        assert code == 1
        assert f"{name} cannot be read" in out


def test_check_notices_files_of_another_federation(
    aequa: Say, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    init_federation(other, Plan((HOST,)), ("a", "b"), 10)
    for name in ("server/server.pem", "sites/a/ca.crt", "sites/b/b.pub"):
        shutil.copy(other / name, folder / name)
    code, out, _ = aequa("check", folder)
    assert code == 1
    assert "server/server.pem is not signed by server/ca.crt" in out
    assert "server/server.key is not the key of server/server.pem" in out
    assert "sites/a/ca.crt is from another federation; copy ca/ca.crt over it" in out
    assert "sites/b/b.pub is not the public key of sites/b/b.key" in out


def test_a_key_that_others_can_read_is_wrong(aequa: Say, folder: Path) -> None:
    key = folder / "sites" / "a" / "a.key"
    key.chmod(0o640)
    code, out, _ = aequa("check", folder, "--site", "a")
    assert code == 1
    assert f"sites/a/a.key can be read by others (mode 0640); run `chmod 600 {key}`" in out
    assert aequa("check", folder, "--site", "b")[0] == 0
    code, _, err = aequa("check", folder, "--site", "c")
    assert code == 1
    assert "There is no site c" in err
    assert "the sites are: a, b." in err


def test_a_machine_checks_the_part_that_it_was_given(
    aequa: Say, folder: Path, tmp_path: Path
) -> None:
    for part, own in (("sites/a", "a.key"), ("server", "server.key")):
        given = tmp_path / "given" / part
        shutil.copytree(folder / part, given)
        code, out, _ = aequa("check", given)
        assert code == 0, out
        assert f"{own} can be read by its owner only" in out
        (given / own).unlink()
        assert aequa("check", given)[0] == 1


def test_connecting_where_nobody_listens_is_a_sentence(aequa: Say, tmp_path: Path) -> None:
    # Nobody listens on port 1.
    init_federation(tmp_path / "fed", Plan(("127.0.0.1",), 1), ("a",), 10)
    for folder in (tmp_path / "fed", tmp_path / "fed" / "sites" / "a"):
        code, out, _ = aequa("check", folder, "--connect")
        assert code == 1
        assert "WRONG  127.0.0.1:1 cannot be reached (Connection refused)" in out
