"""Devices: threads and memory, with the same names on every kind."""
