"""Rows of edges in packed pages: bit-packed groups of 32 numbers, which are unpacked page by page (DESIGN.md)."""
