"""`aequa federation`: create and check the files of a federation on real machines."""

import argparse
from pathlib import Path

from rich.console import Console

from aequa_flwr.cli.checks import print_checks
from aequa_flwr.deployment import (
    Plan,
    add_sites,
    connection_check,
    file_checks,
    init_federation,
    parse_hosts,
    parse_sites,
    renew_certificate,
)

# A little more than a year, the most that browsers accept.
_DAYS = 397


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Create and check the certificates, keys, commands and services of a federation."
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_init(actions)
    _add_add_site(actions)
    _add_check(actions)
    _add_renew(actions)


def _add_init(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    init = actions.add_parser(
        "init",
        help="create the folder of a new federation",
        description=(
            "Write a folder with a certificate authority, the server's certificate, a key pair "
            "for each site, start scripts and systemd units for every machine, and a README with "
            "the steps. Nothing is ever overwritten."
        ),
    )
    _add_folder(init, "the folder to write; must be empty or not exist")
    _add_sites(init)
    init.add_argument(
        "--host",
        action="append",
        required=True,
        metavar="NAME",
        help="the server's host names or IP addresses, separated by commas; sites use the first",
    )
    init.add_argument("--port", type=int, default=8000, help="the server's port (default 8000)")
    _add_days(init)
    init.set_defaults(command=_init_command)


def _add_add_site(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    add = actions.add_parser("add-site", help="add sites to a federation's folder")
    _add_folder(add)
    _add_sites(add)
    add.set_defaults(command=_add_site_command)


def _add_check(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    check = actions.add_parser("check", help="report what is wrong or expires soon")
    _add_folder(check, "the federation's folder, or a copy of its server/ or sites/NAME/")
    check.add_argument("--site", metavar="NAME", help="only the files of this site")
    check.add_argument("--connect", action="store_true", help="also connect to the server")
    check.add_argument(
        "--starting",
        action="store_true",
        help="as in the start scripts: report only problems; the server need not be up",
    )
    check.set_defaults(command=_check_command)


def _add_renew(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    renew = actions.add_parser(
        "renew",
        help="issue a new server certificate from the same CA",
        description=(
            "Issue a new server certificate from the same CA for the same key; the sites need "
            "nothing new. server/server.pem is replaced, and the old one is kept beside it as "
            "server.pem.old. No other file is ever replaced."
        ),
    )
    _add_folder(renew)
    renew.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="new hosts, instead of the previous ones",
    )
    _add_days(renew)
    renew.set_defaults(command=_renew_command)


def _add_folder(parser: argparse.ArgumentParser, says: str = "the federation's folder") -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help=says)


def _add_sites(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sites", action="append", required=True, metavar="A,B,C", help="the sites' names"
    )


def _add_days(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days",
        type=int,
        default=_DAYS,
        help=f"how long the server's certificate is valid (default {_DAYS})",
    )


def _init_command(options: argparse.Namespace, console: Console) -> int:
    folder = _folder(options)
    plan = Plan(parse_hosts(options.host), options.port)
    sites = parse_sites(options.sites)
    init_federation(folder, plan, sites, options.days)
    _say(console, f"Created a federation at {plan.address} with {_counted(sites)} in {folder}.")
    _say(console, f"The next steps are in {folder / 'README.md'}.")
    return 0


def _add_site_command(options: argparse.Namespace, console: Console) -> int:
    folder, sites = _folder(options), parse_sites(options.sites)
    add_sites(folder, sites)
    register = folder / "operator" / "register-sites.sh"
    _say(console, f"Added {_counted(sites)} to {folder / 'sites'}: {', '.join(sites)}.")
    _say(console, f"Register with `{register} {' '.join(sites)}`, then give each its folder.")
    return 0


def _check_command(options: argparse.Namespace, console: Console) -> int:
    folder = _folder(options)
    checks = file_checks(folder, options.site)
    if options.connect:
        checks.append(connection_check(folder, must_answer=not options.starting))
    return print_checks(console, checks, only_problems=options.starting)


def _renew_command(options: argparse.Namespace, console: Console) -> int:
    folder = _folder(options)
    hosts = parse_hosts(options.host) if options.host else ()
    kept = renew_certificate(folder, options.days, hosts)
    _say(console, f"{folder / 'server' / 'server.pem'} is new; the old one is {kept.name}.")
    _say(console, "Copy it to the server and restart the SuperLink; the sites need nothing new.")
    return 0


def _folder(options: argparse.Namespace) -> Path:
    # Absolute, because Flower requires an absolute path of the CA's certificate.
    folder: Path = options.folder.expanduser().absolute()
    return folder


def _counted(sites: tuple[str, ...]) -> str:
    return f"{len(sites)} site{'' if len(sites) == 1 else 's'}"


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
