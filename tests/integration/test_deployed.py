"""Participants on machines of their own: their data, their refusal, their reward."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from aequa_flwr.data import load_schema
from aequa_flwr.errors import UserError
from aequa_flwr.federation import REWARD
from aequa_flwr.rewards import load_card, load_reward
from tests.integration.in_process import InProcessGrid, record_of, run_in_process
from tests.integration.sites import DEPLOYED, write_sites


def test_deployed_participants_bring_their_own_folders(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    server = str(tmp_path / "server")
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, data_dir=server, **DEPLOYED)
    record = record_of(tmp_path / "run")
    sizes = {line["name"]: line["num_examples"] for line in record["participants"]}
    assert sizes == {"hospital-a": 600, "hospital-b": 300, "hospital-c": 50}
    assert record["data"]["num_train"] == 950
    contributions = {line["name"]: line["contribution"] for line in record["participants"]}
    assert contributions["hospital-a"] > contributions["hospital-b"] > contributions["hospital-c"]
    # One class of ten: its holder knows the federation's other nine by name, not by example.
    assert contributions["hospital-c"] == pytest.approx(0.1)
    card = load_card(tmp_path / "at" / "hospital-c" / "run" / "hospital-c")
    assert card.schema == load_schema(tmp_path / "server" / "schema.json")


def test_rewards_are_earned_unless_members_are_trusted_with_the_full_model(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    settings = DEPLOYED | {"data_dir": str(tmp_path / "server")}
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, **settings)
    record = record_of(tmp_path / "run")
    assert record["config"]["reward"] == "earned"
    assert record["exposed"]["worst_leak"] == 0.0
    with pytest.raises(UserError, match="sends every member of a deployed federation the full"):
        run_in_process(
            tmp_path / "no", num_nodes=3, sites=sites, reward="post-training", **settings
        )
    settings["members_trusted_with_full_model"] = True
    run_in_process(tmp_path / "trusted", num_nodes=3, sites=sites, **settings)
    assert record_of(tmp_path / "trusted")["config"]["reward"] == "post-training"
    report = (tmp_path / "trusted" / "report.html").read_text(encoding="utf-8")
    header = report[report.index("<header>") : report.index("</header>")]
    assert "The members of this federation were trusted with the full model" in header
    assert "were trusted" not in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_server_may_have_nothing_but_the_schema(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    (tmp_path / "server" / "test.npz").unlink()
    settings = DEPLOYED | {"data_dir": str(tmp_path / "server"), "contribution": "cgsv"}
    with pytest.raises(UserError, match="holds neither"):
        run_in_process(tmp_path / "refused", num_nodes=3, sites=sites, **settings)
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, validation=False, **settings)
    record = record_of(tmp_path / "run")
    assert (record["status"], record["data"]["num_validation"]) == ("completed", 0)
    assert all(line["width"] is not None for line in record["participants"])
    assert load_reward(tmp_path / "at" / "hospital-a" / "run" / "hospital-a") is not None


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda site: (Path(site["data"]) / "schema.json").unlink(), "has no schema.json"),
        (lambda site: site.pop("participant"), "The node has no participant name"),
        (lambda site: (Path(site["data"]) / "train.npz").write_bytes(b"PK"), "train.npz"),
        (lambda site: _rename_classes(Path(site["data"])), "its schema (classes and form"),
    ],
)
def test_a_site_that_cannot_take_part_is_refused_and_the_others_go_on(
    tmp_path: Path, damage: Any, says: str
) -> None:
    sites = write_sites(tmp_path)
    damage(sites[1])
    settings = DEPLOYED | {"join_timeout_s": 2.0, "data_dir": str(tmp_path / "server")}
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, **settings)
    record = record_of(tmp_path / "run")
    assert [line["name"] for line in record["participants"]] == ["hospital-a", "hospital-c"]
    assert any(says in failure["reason"] for failure in record["failures"]), record["failures"]


def _rename_classes(folder: Path) -> None:
    text = (folder / "schema.json").read_text(encoding="utf-8")
    (folder / "schema.json").write_text(text.replace('"7"', '"seven"'), encoding="utf-8")


# --- delivery


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


class NobodyAtB(InProcessGrid):
    """The node of hospital-b is away when rewards are delivered."""

    def answer(self, message: Message) -> Message:
        away = self.contexts[message.metadata.dst_node_id].node_config["participant"]
        if message.metadata.message_type == REWARD and away == "hospital-b":
            raise_from_node = self.contexts.pop(message.metadata.dst_node_id)
            try:
                return super().answer(message)
            finally:
                self.contexts[message.metadata.dst_node_id] = raise_from_node
        return super().answer(message)


def test_each_site_gets_its_own_reward_and_nothing_else(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    server = str(tmp_path / "server")
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, data_dir=server, **DEPLOYED)
    record = record_of(tmp_path / "run")
    assert record["failures"] == []
    for line in record["participants"]:
        name = line["name"]
        assert files_below(tmp_path / "at" / name) == {
            f"run/{name}/card.json",
            f"run/{name}/model.safetensors",
        }
        card = load_card(tmp_path / "at" / name / "run" / name)
        assert (card.participant, card.width, card.run) == (name, line["width"], "run")
        assert card.accuracy == line["reward_accuracy"]
        text = (tmp_path / "at" / name / "run" / name / "card.json").read_text(encoding="utf-8")
        others = {other["name"] for other in record["participants"]} - {name}
        assert not any(other in text for other in others)
        load_reward(tmp_path / "at" / name / "run" / name)
    assert not (tmp_path / "run" / "rewards").exists()


@pytest.mark.parametrize("roster", ["", "whose.json"])
def test_who_is_away_at_the_end_gets_its_reward_when_it_is_back(
    tmp_path: Path, roster: str
) -> None:
    sites = write_sites(tmp_path)
    server = str(tmp_path / "server")
    settings = DEPLOYED | {"data_dir": server}
    # Whatever roster the run was given, `aequa deliver` knows the run's folder alone.
    given = {"roster": str(tmp_path / roster)} if roster else {}
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, grid=NobodyAtB, **settings, **given)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert [f["participant"] for f in record["failures"]] == ["hospital-b"]
    assert "its reward was not delivered" in record["failures"][0]["reason"]
    assert not (tmp_path / "at" / "hospital-b").exists()
    waiting = tmp_path / "run" / "rewards"
    assert [path.name for path in waiting.iterdir()] == ["hospital-b"]
    kept = load_card(waiting / "hospital-b")
    run_in_process(
        tmp_path / "again", num_nodes=3, sites=sites, deliver=str(tmp_path / "run"), **settings
    )
    assert load_card(tmp_path / "at" / "hospital-b" / "run" / "hospital-b") == kept
    assert list(waiting.iterdir()) == []
    assert record_of(tmp_path / "run")["failures"] == []
    assert "not delivered" not in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(UserError, match=r"All rewards of .* have been delivered"):
        run_in_process(
            tmp_path / "again", num_nodes=3, sites=sites, deliver=str(tmp_path / "run"), **settings
        )


def test_a_reward_does_not_go_to_another_node_that_takes_the_name(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    settings = DEPLOYED | {"data_dir": str(tmp_path / "server"), "join_timeout_s": 1.0}
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, grid=NobodyAtB, **settings)
    # Node 100, which was hospital-a's, now says that it is hospital-b.
    thief = [sites[1] | {"rewards": str(tmp_path / "stolen")}]
    with pytest.raises(UserError, match="1 of 1 rewards were not delivered: hospital-b: it is not"):
        run_in_process(
            tmp_path / "again", num_nodes=1, sites=thief, deliver=str(tmp_path / "run"), **settings
        )
    assert not (tmp_path / "stolen").exists()
    assert (tmp_path / "run" / "rewards" / "hospital-b").exists()


def test_a_site_whose_disk_is_full_is_named_and_the_others_have_theirs(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    blocked = tmp_path / "at" / "hospital-a"
    blocked.parent.mkdir()
    blocked.write_text("a file where a folder should be")
    server = str(tmp_path / "server")
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, data_dir=server, **DEPLOYED)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert [f["participant"] for f in record["failures"]] == ["hospital-a"]
    assert "it could not store its reward" in record["failures"][0]["reason"]
    assert (tmp_path / "at" / "hospital-c" / "run").exists()


# --- who is who


def test_a_name_stays_with_its_node_from_run_to_run(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    settings = DEPLOYED | {
        "data_dir": str(tmp_path / "server"), "roster": str(tmp_path / "roster.json"),
        "rounds": 1, "join_timeout_s": 1.0,
    }  # fmt: skip
    run_in_process(tmp_path / "one", num_nodes=3, sites=sites, **settings)
    swapped = [sites[1], sites[0], sites[2]]
    run_in_process(tmp_path / "two", num_nodes=3, sites=swapped, **settings)
    record = record_of(tmp_path / "two")
    assert [line["name"] for line in record["participants"]] == ["hospital-c"]
    refused = {f["participant"] for f in record["failures"] if "another node" in f["reason"]}
    assert refused == {"hospital-a", "hospital-b"}


def test_a_folder_of_registered_sites_is_a_roster(tmp_path: Path) -> None:
    sites = write_sites(tmp_path)
    registered = tmp_path / "registered"
    registered.mkdir()
    for name, node in (("hospital-a", 100), ("hospital-b", 777), ("hospital-c", 102)):
        (registered / name).write_text(f"{node}\n")
    settings = DEPLOYED | {
        "data_dir": str(tmp_path / "server"), "roster": str(registered), "rounds": 1,
        "join_timeout_s": 1.0,
    }  # fmt: skip
    run_in_process(tmp_path / "run", num_nodes=3, sites=sites, **settings)
    record = record_of(tmp_path / "run")
    assert [line["name"] for line in record["participants"]] == ["hospital-a", "hospital-c"]
    assert sorted(path.name for path in registered.iterdir()) == [
        "hospital-a", "hospital-b", "hospital-c"
    ]  # fmt: skip


def test_a_second_node_of_the_same_name_is_refused_in_both_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sites = write_sites(tmp_path)
    settings = DEPLOYED | {"data_dir": str(tmp_path / "server"), "join_timeout_s": 1.0}
    with caplog.at_level(logging.WARNING):
        settings["participants"] = 4
        run_in_process(tmp_path / "run", num_nodes=4, sites=[*sites, sites[0]], **settings)
    said = [
        record.name for record in caplog.records if "another node has joined" in record.getMessage()
    ]
    assert {"aequa_flwr.server.journal", "aequa_flwr.federation.node"} <= set(said)


@pytest.mark.parametrize(
    ("quorum", "damaged", "says"),
    [
        (3, 1, "Only 2 of at least 3 participants joined within 1 s"),
        (1, 3, "No participant joined"),
    ],
)
def test_without_a_quorum_nothing_is_trained(
    tmp_path: Path, quorum: int, damaged: int, says: str
) -> None:
    sites = write_sites(tmp_path)
    for site in sites[:damaged]:
        shutil.rmtree(site["data"])
    settings = DEPLOYED | {"data_dir": str(tmp_path / "server"), "join_timeout_s": 1.0}
    with pytest.raises(UserError, match=says):
        run_in_process(tmp_path / "run", num_nodes=3, sites=sites, join_quorum=quorum, **settings)
    assert record_of(tmp_path / "run")["status"] == "failed"


@pytest.mark.parametrize("content", ["", "[]", '{"nodes": 3}', '{"nodes": {"a": "x"}}'])
def test_a_file_that_is_no_roster_is_refused(tmp_path: Path, content: str) -> None:
    sites = write_sites(tmp_path)
    (tmp_path / "roster.json").write_text(content)
    settings = DEPLOYED | {"data_dir": str(tmp_path / "server")}
    with pytest.raises(UserError, match="is not a roster"):
        run_in_process(
            tmp_path / "run",
            num_nodes=3,
            sites=sites,
            roster=str(tmp_path / "roster.json"),
            **settings,
        )


def test_a_process_that_meets_another_site_with_the_same_settings_uses_its_data(
    tmp_path: Path,
) -> None:
    first, other = write_sites(tmp_path / "first"), write_sites(tmp_path / "other")
    for number, site in enumerate(other):
        site["participant"] = f"clinic-{number}"
    settings = {**DEPLOYED, "rounds": 1, "data_dir": str(tmp_path / "first" / "server")}
    for sites, name in ((first, "one"), (other, "two")):
        run_in_process(tmp_path / name, num_nodes=3, sites=sites, **settings)
        names = [line["name"] for line in record_of(tmp_path / name)["participants"]]
        assert names == sorted(site["participant"] for site in sites)
        assert record_of(tmp_path / name)["failures"] == []
