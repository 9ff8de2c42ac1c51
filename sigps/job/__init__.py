"""A job: its file, its device, the run, and the result."""
