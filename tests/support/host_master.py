"""`master.cuh` compiled for the host: what a lease does between two supersteps of a program with a `master()`."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
from host_cpp import FOLDER, host_library

from sigps.compiler.cuda import compile as cuda
from sigps.compiler.cuda.adapters import Layout
from sigps.compiler.cuda.master import master_source
from sigps.compiler.program import VertexProgram

__all__ = ["MasterOnHost"]

_ENUMS = ("Direction", "SenderFilter", "Frontier", "Remaining", "Status", "Ending")

_LEASE = """
struct Control {
  int64_t lost_id;
};
struct Lease {
  Arguments in;
  uint32_t could_send, num_owned, asks_master;
  void *aggregates;
  uint8_t *status;
  Control *control;
};
inline uint32_t thread_of_grid() { return 0; }
inline uint32_t threads_of_grid() { return 1; }
"""
"""What `master.cuh` needs of `lease.cuh`, which the host's compiler cannot read."""

_ENTRIES = """
using namespace sigps;
extern "C" void run_master_here(const Lease *lease, const NextSuperstep *now, uint32_t has_run, uint32_t counts,
                                NextSuperstep *next) {
  run_master(*lease, *now, has_run, counts, *next);
}
extern "C" void wake_all_here(const Lease *lease) { wake_all(*lease); }
"""


class MasterOnHost:
    """`sigps_master` of a program and what `master.cuh` makes of it."""

    def __init__(self, program: VertexProgram, layout: Layout) -> None:
        text = (FOLDER / "lease.cuh").read_text() + (FOLDER / "direction.cuh").read_text()
        enums = [re.search(rf"enum {name} .*?\n?\}};", text, re.DOTALL) for name in _ENUMS]
        upcoming = re.search(r"struct NextSuperstep \{.*?\n\};", text, re.DOTALL)
        assert all(enums)
        assert upcoming is not None
        own = (FOLDER / "master.cuh").read_text()
        own = own.replace("#pragma once", "").replace('#include "lease.cuh"', "")
        parts = [found[0] for found in (*enums, upcoming) if found is not None]
        neutral = cuda._neutral(program, layout.slots)
        defines = cuda._defines(program, layout, neutral, can_fault=False)
        stubs = "namespace sigps {\n" + "\n".join([*parts, _LEASE]) + "}\n"
        source = master_source(program, layout) + stubs + own + _ENTRIES
        self._library = host_library(source, tuple(defines.items()))

    def run(self, lease: Any, control: Any, now: Any, *, has_run: bool, counts: bool) -> None:
        """Change `control["next"]` as master() says, and wake the vertices.

        Args:
            lease: A `kernels.cuda.lease.LEASE`.
            control: A `kernels.cuda.lease.CONTROL`, whose next superstep is planned; an array's element.
            now: The superstep that is over, as it was planned.
            has_run: Whether a vertex ran in it.
            counts: Whether it is in the statistics.
        """
        given = np.zeros((), _HERE)
        given["in"] = lease["in"]
        for name in ("could_send", "num_owned", "asks_master", "aggregates", "status"):
            given[name] = lease[name]
        lost = np.zeros(1, np.int64)
        given["control"] = lost.ctypes.data
        upcoming = np.array(control["next"])
        before = np.array(now)
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (given, before, upcoming)]
        self._library.run_master_here(
            *addresses[:2], ctypes.c_uint32(has_run), ctypes.c_uint32(counts), addresses[2]
        )
        control["next"] = upcoming
        control["lost_id"] = lost[0]
        if upcoming["has_woken"]:
            self._library.wake_all_here(addresses[0])


def _here() -> np.dtype[Any]:
    from sigps.kernels.cuda.abi import ARGUMENTS

    fields = [("could_send", np.uint32), ("num_owned", np.uint32), ("asks_master", np.uint32)]
    pointers = [(name, np.uint64) for name in ("aggregates", "status", "control")]
    return np.dtype([("in", ARGUMENTS), *fields, *pointers], align=True)


_HERE = _here()
