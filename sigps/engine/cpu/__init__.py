"""Supersteps on CPU cores."""
