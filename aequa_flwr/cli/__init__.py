"""The command `aequa`: its options, what it prints, and its exit codes."""
