"""One partition of a graph, as engines run it."""
