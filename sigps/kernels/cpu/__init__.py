"""Loops on CPU cores that a program is compiled into."""
