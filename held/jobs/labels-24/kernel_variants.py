"""Kernels with a few lines changed, linked in place of the ones of the tree, in the process that asks for it."""

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

from sigps.device import linking
from sigps.engine.gpu import placed_edges, variant

KERNELS = Path(linking.kernels.__file__).parent
TILES = dict(variant.TILES)
ENDS = """    for (int k = 0; k < K; k++)
      sources[k] = i < degrees[k]
                       ? end_at(lease.in_edges, positions[k] + uint64_t(i) * 32)
                       : NO_VERTEX;
"""
LOOP = "  for (uint32_t i = 0; i < widest; i++) {\n    uint32_t sources[K];"
BEFORE_LOOP = """  uint32_t next[K];
#pragma unroll
  for (int k = 0; k < K; k++)
    next[k] = degrees[k] ? end_at(lease.in_edges, positions[k]) : NO_VERTEX;
#pragma unroll 1
"""
ENDS_AHEAD = """    for (int k = 0; k < K; k++) {
      sources[k] = next[k];
      next[k] = i + 1 < degrees[k] ? end_at(lease.in_edges, positions[k] + uint64_t(i + 1) * 32) : NO_VERTEX;
    }
"""
KEPT = "Record records[K] = {};"
KEEP = "    lease.partials[slice * 32 + lane_id()] = inbox.slots;"
STREAMED = """    __stcs(reinterpret_cast<uint4 *>(lease.partials + slice * 32 + lane_id()),
           *reinterpret_cast<const uint4 *>(&inbox.slots));"""
COMBINE = "  for (uint32_t share = num_combined() + blockIdx.x;"

EDITS = {
    "": [],
    "kept records": [("gather.cuh", KEPT, "Record records[K];")],
    "one slice": [("gather.cuh", "SIGPS_TILES ? 2 : 4", "SIGPS_TILES ? 1 : 4")],
    "not unrolled": [("gather.cuh", LOOP, "#pragma unroll 1\n" + LOOP)],
    "ends ahead": [("gather.cuh", LOOP, BEFORE_LOOP + LOOP), ("gather.cuh", ENDS, ENDS_AHEAD)],
    "partials streamed": [("tiles.cuh", KEEP, STREAMED)],
    "rows alone": [("tiles.cuh", COMBINE, "  return;\n" + COMBINE)],
    "window 16": [("tile_layout.cu", "WINDOW = 8;", "WINDOW = 16;")],
}
"""Variants, and what replaces what in which file. Of `rows alone` the answers are wrong: it is for the clock alone."""


def folder_of(name):
    """Return a folder with the kernels of a variant."""
    folder = Path(tempfile.mkdtemp()) / "cuda"
    shutil.copytree(KERNELS, folder)
    for file, old, new in EDITS[name]:
        text = (folder / file).read_text()
        assert text.count(old) == 1, (name, file, text.count(old))
        (folder / file).write_text(text.replace(old, new))
    return folder


def is_of_lease(name):
    """Return whether a variant has other kernels than those that lay edges out."""
    return any(file != "tile_layout.cu" for file, *_ in EDITS[name])


def macros_of(name):
    """Return macros by which what is linked of a variant is kept apart in memory and on disk."""
    return {"SIGPS_VARIANT": str(list(EDITS).index(name))} if is_of_lease(name) else {}


def use_kernels(name):
    """Link a variant from now on."""
    folder = folder_of(name) if name else KERNELS
    linking.kernels = SimpleNamespace(__file__=str(folder / "__init__.py"))
    variant.TILES.clear()
    variant.TILES.update(TILES | macros_of(name))
    linking.cache = CACHE if is_of_lease(name) or not name else OfTree
    for cached in (variant.load_variant, variant.link_variant_ahead, placed_edges.layout_kernel):
        cached.cache_clear()
    placed_edges._layout_module.cache_clear()
    placed_edges.link_layout_ahead.cache_clear()


class OfTree:
    """What lies on disk, but for the layout's kernels, which have no macros to tell variants by."""

    @staticmethod
    def read(key):
        return None if "tile_layout" in key else CACHE.read(key)

    @staticmethod
    def write(key, kept):
        if "tile_layout" not in key:
            CACHE.write(key, kept)


CACHE = linking.cache

if __name__ == "__main__":  # python kernel_variants.py NAME: writes a variant into the tree that is imported
    import sys

    folder = folder_of(sys.argv[1])
    for changed, *_ in EDITS[sys.argv[1]]:
        shutil.copy(folder / changed, KERNELS / changed)
