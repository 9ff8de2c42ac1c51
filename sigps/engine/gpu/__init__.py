"""Supersteps on GPUs."""
