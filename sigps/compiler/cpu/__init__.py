"""From a vertex program to loops on CPU cores: Numba compiles its functions into the loops of `kernels/cpu`."""
