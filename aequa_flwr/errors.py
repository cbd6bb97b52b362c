"""What ends a program early: the one exception whose text is for the user, and signals."""

import signal

# Ctrl-C, a supervisor's stop, a closed terminal.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UserError(Exception):
    """Something the user can change; its text is one sentence that says what.

    The command line prints the text and ends with ``exit_code``; a traceback is shown only on
    request.
    """

    exit_code = 1


class UsageError(UserError):
    """An option or setting that cannot be meant."""

    exit_code = 2
