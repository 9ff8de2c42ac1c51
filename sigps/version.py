"""The version of sigps, in a file of its own so that every layer may import it."""

__version__ = "0.1.0.dev0"
