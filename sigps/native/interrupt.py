"""Ctrl-C while compiled code runs: a loop of the user's may never end, and Python's own handler waits until it does.

Compiled `while` loops look at a byte at every turn (`machine.interrupted`). Inside `watching()` a handler of machine
code sets it, and then calls Python's handler as the system would have.
"""

from __future__ import annotations

import ctypes
import functools
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["watching"]

_previous = ctypes.c_void_p(0)
_watched: list[None] = []


@contextmanager
def watching() -> Iterator[None]:
    """Let Ctrl-C end compiled loops, inside. Does nothing outside the main thread, or where SIGINT is ignored.

    It may be entered again inside.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if _watched or not is_main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL, None):
        yield
        return
    from sigps.native.machine import interrupted

    code, address = _handler()
    libc = _libc()
    interrupted.value = 0
    _previous.value = libc.signal(signal.SIGINT, address)
    libc.siginterrupt(signal.SIGINT, 1)  # waits end, as with Python's handler
    _watched.append(None)
    try:
        yield
    finally:
        _watched.pop()
        libc.signal(signal.SIGINT, _previous)
        libc.siginterrupt(signal.SIGINT, 1)
        del code


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    return libc


@functools.cache
def _handler() -> tuple[Any, int]:
    from sigps.native.machine import MachineCode, assemble, interrupted

    text = f"""
define void @handle(i32 %number) {{
  store i8 1, ptr inttoptr (i64 {ctypes.addressof(interrupted)} to ptr)
  %previous = load ptr, ptr inttoptr (i64 {ctypes.addressof(_previous)} to ptr)
  call void %previous(i32 %number)
  ret void
}}
"""
    code = MachineCode(assemble(text))
    return code, code.address("handle")
