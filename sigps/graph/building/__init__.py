"""From chunks of edges to the rows of a graph."""
