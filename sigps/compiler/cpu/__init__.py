"""From a vertex program to loops on CPU cores: its functions are compiled into the loops of `kernels/cpu`."""
