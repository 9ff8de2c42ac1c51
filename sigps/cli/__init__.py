"""The command `sigps`."""
