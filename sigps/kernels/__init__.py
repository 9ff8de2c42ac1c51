"""Kernels: schedules that a program's functions are compiled into."""
