"""Ranks that die, stop or hang: noticed, and named."""
