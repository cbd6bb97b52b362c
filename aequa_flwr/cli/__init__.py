"""The command `aequa`; the only code of the library that prints."""
