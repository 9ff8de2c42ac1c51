"""State logs: written, listed, and read again."""
