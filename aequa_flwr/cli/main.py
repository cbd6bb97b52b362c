"""The entry point: light, so that Ctrl-C while everything else is imported is quiet too."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 well, 1 failed, 2 misused, 130 interrupted)."""
    try:
        from aequa_flwr.cli.commands import run_command_line

        return run_command_line(arguments)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
