"""From a class body to a vertex program: the passes over compute()."""
