"""From a `Vertex` class to native code: the front end, the back ends, and what `sigps explain` prints (`explain.py`).

Nothing is imported here: what a program is (`program.py`) is read by much that compiles nothing.
"""
