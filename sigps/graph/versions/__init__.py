"""Versions of a graph: batches of inserted and deleted edges, by rewriting the rows that they touch."""
