"""The entry point; it imports little, so that Ctrl-C during the other imports is quiet too."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0 success, 1 failure, 2 usage error, 130 interrupt."""
    try:
        from aequa_flwr.cli.commands import run_command_line

        return run_command_line(arguments)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
