"""Measures of a graph that states may begin with."""
