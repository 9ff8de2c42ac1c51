"""The engine: supersteps of one partition."""
