"""Supersteps in plain Python."""
