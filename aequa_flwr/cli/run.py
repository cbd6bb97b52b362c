"""`aequa run`: simulate a federation, or run on a real one, and report how it ended."""

import argparse
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from aequa_flwr.cli.show import show_record
from aequa_flwr.contribution import ESTIMATORS
from aequa_flwr.data import PARTITIONS
from aequa_flwr.deployment import (
    COMPLETED,
    ProgressView,
    check_commands,
    check_end,
    choose_port,
    follow_connected,
)
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.methods import METHODS, PARTICIPATIONS
from aequa_flwr.results import (
    PROGRESS_FILE,
    REWARDS_FOLDER,
    ROSTER_FILE,
    check_trackers,
    load_record,
)
from aequa_flwr.server import check_settings, load_checkpoint, prepare_simulation, reopen_run
from aequa_flwr.settings import DATASETS, RunConfig
from aequa_flwr.simulation import Wanted, check_memory, choose_size, run_on_ray


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Simulate a federation on this machine. The contribution of every participant is "
        "assessed, all train one slimmable network together, and each receives a sub-network "
        "worth its contribution. Exits with 0 only if every stage completed."
    )
    parser.epilog = (
        "Use --set KEY=VALUE for all other settings: "
        + ", ".join(sorted(key for key in _keys() if key not in _OPTIONS))
        + ". Defaults depend on the data set."
    )
    add = parser.add_argument
    add("--method", help=f"one of {', '.join(METHODS)} (default aequa); others are baselines")
    add("--dataset", help=f"one of {', '.join(DATASETS)} (default digits, which is built in)")
    add("--data-dir", help="folder that holds the data set, or your own file")
    add("--cache-dir", help="folder of prepared data sets (default: the user's cache)")
    add("--download", action="store_true", default=None, help="download the data set if missing")
    add("--partition", help="; ".join(form.text for form in PARTITIONS.values()))
    add("--participants", help="number of participants (default 10)")
    add("--network", help="one of `aequa networks`, or your own as package.module:function")
    add("--rounds", help="number of rounds")
    add("--participation", help="; ".join(form.text for form in PARTICIPATIONS.values()))
    add(
        "--contribution",
        help=f"one of {', '.join(ESTIMATORS)} (default standalone), with options as "
        "kind:key=value; or your own as package.module:Class",
    )
    add(
        "--reward",
        help="post-training (default in a simulation), training-time or earned (default with "
        "--connection)",
    )
    add("--seed", help="seed of all random numbers (default 1)")
    add("--solver", help="how rewards are allocated: exact (default) or annealing")
    add("--output", help="new folder for the results (default runs/DATASET-TIME)")
    add("--device", help="auto (default), cpu, cuda or mps")
    add("--workers", type=int, help="training processes (default: one per core or GPU)")
    add("--workers-per-gpu", type=int, help="training processes that share a GPU (default 1)")
    add("--nodes", type=int, help="simulated nodes (default: one per worker)")
    add("--port", type=int, help="port of the local SuperLink (default: a free one)")
    add(
        "--connection",
        help="run on real nodes instead of a simulation: the name of a SuperLink in Flower's "
        "configuration",
    )
    add(
        "--resume",
        metavar="RUN",
        help="resume the interrupted run in this folder from its last checkpoint",
    )
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting")
    parser.set_defaults(command=run_command)


_OPTIONS = (
    "method",
    "dataset",
    "data-dir",
    "cache-dir",
    "download",
    "partition",
    "participants",
    "network",
    "rounds",
    "participation",
    "contribution",
    "reward",
    "seed",
    "solver",
    "device",
    "output",
)


def _keys() -> set[str]:
    return {name.replace("_", "-") for name in RunConfig.model_fields}


def run_command(options: argparse.Namespace, console: Console) -> int:
    """Run the federation and show its result; return the exit code."""
    config = _read_config(options) if options.resume is None else _resumed_config(options)
    check_settings(config)
    if config.resume:
        if options.connection is None and (Path(config.output) / ROSTER_FILE).exists():
            raise UserError(
                f"The run in {config.output} belongs to a real federation; add --connection NAME, "
                "the name of its SuperLink in Flower's configuration."
            )
        # It was shown already, and is for people only.
        (Path(config.output) / PROGRESS_FILE).unlink(missing_ok=True)
    if options.connection is not None:
        return _run_connected(config, options, console)
    check_commands()
    check_trackers(tensorboard=config.tensorboard, tracker=config.tracker)
    wanted = Wanted(options.workers, options.nodes, options.workers_per_gpu)
    size = choose_size(config, wanted, lambda text: _say(console, text))
    port = choose_port(options.port)
    folder = Path(config.output)
    if not config.resume:
        _refuse_existing(folder)
    with ProgressView(console) as view:
        view.say("Checking the data")
        parts = prepare_simulation(config, view.say)
        check_memory(config, size, parts.data, parts.network)
        run_on_ray(config, size, port, view)
    show_record(console, load_record(folder), folder)
    return 0


def _read_config(options: argparse.Namespace) -> RunConfig:
    values: dict[str, object] = dict(read_pairs(options.set))
    for key in _OPTIONS:
        given = getattr(options, key.replace("-", "_"))
        if given is not None:
            values[key] = given
    for key in ("data-dir", "cache-dir", "standalone-from", "roster", "output"):
        if values.get(key):
            # Absolute, because the run's processes have other working directories.
            values[key] = str(Path(str(values[key])).expanduser().absolute())
    config = RunConfig.parse(values, deployed=options.connection is not None)
    if config.output:
        return config
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return config.model_copy(
        update={"output": str(Path("runs").absolute() / f"{config.dataset}-{stamp}")}
    )


def _resumed_config(options: argparse.Namespace) -> RunConfig:
    """Return the settings of the run to resume; folders of data and timeouts may be new."""
    places = ("data-dir", "cache-dir")
    patience = read_pairs(options.set)
    given = {key: getattr(options, key.replace("-", "_")) for key in _OPTIONS}
    wrong = [f"--{key}" for key, value in given.items() if value is not None and key not in places]
    wrong += [f"--set {key}" for key in patience if key not in RunConfig.may_change()]
    if wrong:
        raise UsageError(
            f"{wrong[0]} cannot be given with --resume; leave it out. A resumed run keeps its "
            f"settings, except for {' and '.join(RunConfig.may_change())}."
        )
    path = Path(options.resume).expanduser().absolute()
    checkpoint = load_checkpoint(path)
    moved = {
        key.replace("-", "_"): str(Path(given[key]).expanduser().absolute())
        for key in places
        if given[key] is not None
    }
    folder = reopen_run(checkpoint)
    settings = {**checkpoint.config.to_flower(), **patience}
    return RunConfig.parse(settings).model_copy(
        update={"resume": str(path), "output": str(folder), **moved}
    )


def read_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Return the values given with --set by key; raises UsageError if one is not KEY=VALUE."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set {pair} cannot be read; write --set KEY=VALUE.")
        values[key] = value
    return values


def _refuse_existing(folder: Path) -> None:
    if folder.exists():
        raise UserError(f"The output folder {folder} exists already; choose another.")


def _run_connected(config: RunConfig, options: argparse.Namespace, console: Console) -> int:
    """Run on a running federation, whose server has the data and writes the run folder."""
    for name in ("workers", "workers-per-gpu", "nodes", "port"):
        if getattr(options, name.replace("-", "_")) is not None:
            raise UsageError(
                f"--{name} is for a simulation, but --connection {options.connection} is a real "
                "federation; leave one of them out."
            )
    folder = Path(config.output)
    if not config.resume:
        _refuse_existing(folder)
    with ProgressView(console) as view:
        status, log = follow_connected(config, options.connection, folder, view)
    if not folder.exists():
        # The record is on another machine.
        if status == COMPLETED:
            _say(console, f"Completed; the run folder is {folder} on the server.")
            return 0
        raise UserError(f"The run ended as {status}; Flower's log is {log}.")
    check_end(folder, status, log, options.connection)
    show_record(console, load_record(folder), folder)
    waiting = sorted(path.name for path in (folder / REWARDS_FOLDER).glob("*") if path.is_dir())
    if waiting:
        _say(
            console,
            f"Not delivered, because the site was offline: {', '.join(waiting)}. Deliver later "
            f"with `aequa deliver {shlex.quote(str(folder))} --connection {options.connection}`.",
        )
    return 0


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
