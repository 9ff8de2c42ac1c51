"""Graph files and other structures, read and written."""
