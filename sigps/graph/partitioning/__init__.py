"""Divide the vertices of a graph among partitions."""
