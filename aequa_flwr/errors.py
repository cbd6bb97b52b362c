"""Exceptions whose text is meant for the user, and the signals that stop a program."""

import signal

# Ctrl-C, a supervisor's stop, a closed terminal.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UserError(Exception):
    """An error that the user can fix; its text is one sentence that says what to change.

    The command line prints the text and exits with ``exit_code``. A traceback needs ``--debug``.
    """

    exit_code = 1


class UsageError(UserError):
    """An invalid option or setting."""

    exit_code = 2
