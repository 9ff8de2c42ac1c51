"""From a vertex program to a cubin."""
