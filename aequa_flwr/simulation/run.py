"""`simulate`: a whole federation from Python, in this process or through Flower and Ray."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from rich.console import Console

from aequa_flwr.data import Arrays, FederatedData, Schema, federate_arrays, save_schema
from aequa_flwr.deployment import ProgressView, check_commands, choose_port
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.federation import Node
from aequa_flwr.files import TemporaryFolder
from aequa_flwr.methods import Value
from aequa_flwr.results import Progress, load_record
from aequa_flwr.rewards import Run
from aequa_flwr.server import (
    caller_settings,
    load_checkpoint,
    prepare_simulation,
    reopen_run,
    run_federation,
)
from aequa_flwr.settings import RunConfig
from aequa_flwr.simulation.in_process import InProcessGrid, as_flower_task
from aequa_flwr.simulation.local import run_on_ray
from aequa_flwr.simulation.sizing import Wanted, check_memory, choose_size
from aequa_flwr.slim.networks import Builder, SlimNetwork, network_name, usual_network
from aequa_flwr.training import same_threads

Network = str | Builder | SlimNetwork


def simulate(
    *,
    data: Arrays | Mapping[str, Arrays] | None = None,
    validation: Arrays | None = None,
    schema: Schema | None = None,
    network: Network | None = None,
    output: str | Path | None = None,
    progress: bool | Callable[[Progress], None] = True,
    backend: Literal["process", "ray"] = "process",
    workers: int | None = None,
    **settings: Value,
) -> Run:
    """Run a federation on this machine and return its record, rewards and report.

        run = simulate(dataset="digits", rounds=10)
        run.record.measures.pearson
        run.rewards["participant-01"](inputs)  # normalised as the schema on its card says

    Args:
        data: Your own data instead of a named data set: one pair ``(x, y)``, which the settings
            ``participants`` and ``partition`` divide, or a pair for each participant by name.
            Images are uint8, other numbers floats, labels integers from 0. A part of them is set
            aside as a held-out test (``held_out_fraction``, 5 %).
        validation: Inputs and labels that the server measures on. By default, a fifth of every
            class of ``data``.
        schema: What the arrays do not show of your data: the names of classes, or a class that
            has no example.
        network: A name of `aequa networks`, a function that takes a `Schema` and returns a
            `SlimNetwork`, or a `SlimNetwork`, from whose weights the training starts. By default,
            a network that suits the data.
        output: The folder of the run, which must not exist. By default, a temporary folder that is
            removed with the result; `Run.save` keeps a copy.
        progress: Whether to show the progress of the run, or a function that receives it.
        backend: "process" trains one participant after the other in this process. "ray" starts
            Flower with Ray and trains on all cores or GPUs. The record is the same. Data by
            participant and networks that cannot be imported need "process".
        workers: How many processes train with "ray". By default, one per core or GPU.
        settings: All other settings of `RunConfig`, in snake_case: ``participants=5``,
            ``rounds=20``, ``contribution="cgsv"``, ``reward="training-time"``, ...

    Raises:
        UserError: An argument is not valid, or the run failed. The text says what to change. A
            bad argument is found before anything is trained.
    """
    _check_arguments(data, validation, schema, backend, workers)
    _check_folder(output, settings)
    temporary = None
    if output is None and not settings.get("resume"):
        temporary = TemporaryFolder("aequa-run-")
        output = temporary.path / "run"
    given: FederatedData | None = None
    if data is None:
        config = _named_settings(network, output, settings)
    else:
        config, given = _own_settings(data, validation, schema, network, output, settings)
    own_network = None if network is None or isinstance(network, str) else network
    with _shown(progress) as tell:
        if backend == "ray":
            folder = _through_ray(config, given, own_network, workers, tell)
        else:
            folder = _in_this_process(config, given, own_network, tell)
    return Run(folder, load_record(folder), temporary)


def _check_arguments(
    data: object, validation: object, schema: object, backend: str, workers: int | None
) -> None:
    for name, value in (("validation", validation), ("schema", schema)):
        if data is None and value is not None:
            raise UsageError(f"{name} is only for your own data; give data too, or leave it out.")
    if schema is not None and not isinstance(schema, Schema):
        raise UsageError(f"schema is of type {type(schema).__name__}; it must be a Schema.")
    if backend not in ("process", "ray"):
        raise UsageError(f'backend = {backend!r} is not possible; use "process" or "ray".')
    if workers is not None and backend != "ray":
        raise UsageError('workers is only for backend="ray"; leave it out.')
    if backend == "ray" and isinstance(data, Mapping):
        raise UsageError(
            'data by participant is not supported with backend="ray" yet; use backend="process".'
        )


def _check_folder(output: str | Path | None, settings: Mapping[str, Value]) -> None:
    if settings.get("deliver"):
        raise UsageError("deliver is for `aequa deliver`; leave it out.")
    if output is None:
        return
    if settings.get("resume"):
        raise UsageError("output cannot be given with resume: a resumed run keeps its folder.")
    if Path(output).expanduser().exists():
        raise UserError(f"output: {output} exists already; choose another folder.")


def _named_settings(
    network: Network | None, output: str | Path | None, settings: Mapping[str, Value]
) -> RunConfig:
    values: dict[str, object] = {**settings, "output": output or ""}
    if network is not None:
        values["network"] = network_name(network)
    for key in ("data_dir", "cache_dir", "standalone_from", "resume", "output"):
        if values.get(key):
            # Absolute, because the processes of a run have other working directories.
            values[key] = str(Path(str(values[key])).expanduser().absolute())
    return RunConfig.parse(values)


def _own_settings(
    data: Arrays | Mapping[str, Arrays],
    validation: Arrays | None,
    schema: Schema | None,
    network: Network | None,
    output: str | Path | None,
    settings: Mapping[str, Value],
) -> tuple[RunConfig, FederatedData]:
    if isinstance(data, Mapping):
        for key in ("participants", "partition"):
            if key in settings:
                raise UsageError(f"{key} cannot be given with data by participant; leave it out.")
        settings = {**settings, "participants": max(1, len(data))}
    config = caller_settings(network or "auto", output, settings)
    given = federate_arrays(data, config.data_spec, validation=validation, schema=schema)
    if network is None:
        config = config.model_copy(update={"network": usual_network(given.dataset.schema)})
    return config, given


@contextmanager
def _shown(progress: bool | Callable[[Progress], None]) -> Iterator[Callable[[Progress], None]]:
    """Yield the function that receives the progress of a run."""
    if callable(progress):
        yield progress
    elif progress:
        with ProgressView(Console()) as view:
            yield view.show
    else:
        yield lambda _progress: None


def _in_this_process(
    config: RunConfig,
    data: FederatedData | None,
    network: Builder | SlimNetwork | None,
    tell: Callable[[Progress], None],
) -> Path:
    if data is None:
        data = prepare_simulation(config, network=network).data
    found = data
    node = Node(lambda _given, _context: found, network)
    grid = InProcessGrid(node.client_app(), config.to_flower(), num_nodes=1)
    with as_flower_task(), same_threads():
        return run_federation(
            config, grid, config.output, data=found, network=network, on_progress=tell
        )


def _through_ray(
    config: RunConfig,
    data: FederatedData | None,
    network: Builder | SlimNetwork | None,
    workers: int | None,
    tell: Callable[[Progress], None],
) -> Path:
    check_commands()
    _check_importable(network, config.network)
    if config.resume:
        checkpoint = load_checkpoint(Path(config.resume))
        config = config.model_copy(update={"output": str(reopen_run(checkpoint))})
    size = choose_size(config, Wanted(workers), lambda _text: None)
    with TemporaryDirectory(prefix="aequa-data-") as place:
        if data is not None:
            _write(Path(place), data)
            config = config.model_copy(update={"data_dir": place})
        parts = prepare_simulation(config)
        check_memory(config, size, parts.data, parts.network)
        run_on_ray(config, size, choose_port(None), _Told(tell))
    return Path(config.output)


def _check_importable(network: Builder | SlimNetwork | None, name: str) -> None:
    """Raise UsageError unless other processes can build ``network`` from its name."""
    if network is None:
        return
    if isinstance(network, SlimNetwork) or "<" in name or name.startswith("__main__:"):
        raise UsageError(
            'With backend="ray" other processes must be able to import network; give a name or a '
            'function of an installed module, or use backend="process".'
        )


def _write(folder: Path, data: FederatedData) -> None:
    """Write a caller's arrays to files from which other processes load the same data set."""
    for name, part in (("train", data.dataset.train), ("test", data.dataset.test)):
        np.savez(folder / f"{name}.npz", x=part.x, y=part.y)
    save_schema(folder / "schema.json", data.dataset.schema)


class _Told:
    """A view that passes the progress of a run to a function."""

    def __init__(self, tell: Callable[[Progress], None]) -> None:
        self._tell = tell

    def say(self, text: str) -> None:
        """Ignore the steps before and after the run itself."""

    def show(self, progress: Progress) -> None:
        """Pass on the progress."""
        self._tell(progress)
