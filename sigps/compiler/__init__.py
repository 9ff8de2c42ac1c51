"""From a `Vertex` class to native code: the front end, the CPU back end, and what `sigps explain` prints."""

from sigps.compiler.explain import explain

__all__ = ["explain"]
