"""Measures of a graph that can be the initial values of states."""
