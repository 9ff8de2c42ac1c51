"""CUDA kernels that a program is linked into, and their structures as Python sees them."""
