"""Blocks of vertices that cores compute without barriers (`compiler/proofs/asynchronous.py`), on CPU cores.

A block is `1 << bits` vertices of neighbouring local ids. Vertices that may improve are dirty; a block with a dirty
vertex is marked. A core takes the marked block with the best key, pulls for its dirty vertices until there are none
(or `most_inside` were), and publishes each record where it lies: readers see it at once. What a vertex would
improve becomes dirty: in its own block it is next, in another that block is marked.

Many cores write `dirty` and `marked`; all else of a block is written by the one core that has taken it. Three steps
must be seen in one order by all cores, and are `exchange`s: a record is written before its readers become dirty, a
vertex is clean before its in-neighbours are read, and a block is unmarked before its dirty vertices are listed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import exchange, has_fault, load_row

__all__ = ["ENDED", "LEAVE", "RUN", "BlockLimits", "Blocks", "run_blocks", "take_block"]

RUN, LEAVE, ENDED = 0, 1, 2
"""`Blocks.state`: cores run, leave as soon as they can, or have found that nothing is left."""

_SPREAD = 16


class Blocks(NamedTuple):
    """Which vertices and blocks have something to do.

    dirty: [n] 1 where a vertex is to pull. marked: [blocks] 1 where one has a dirty vertex. taken: [blocks] 1 while a
    core has it. keys: [blocks] the best key that came for it, perhaps outdated: it decides about the order alone.
    busy, takes: [16 * cores] every sixteenth: whether a core looks for a block or has one; blocks that it took so far.
    state: [1].
    """

    dirty: NDArray[np.uint8]
    marked: NDArray[np.uint8]
    taken: NDArray[np.uint8]
    keys: NDArray[Any]
    busy: NDArray[np.int64]
    takes: NDArray[np.int64]
    state: NDArray[np.uint8]


class BlockLimits(NamedTuple):
    """How cores go on.

    bits: Vertices of a block, as a power of two. most_inside: vertices computed in a block before another is taken.
    most_work: edges after which a core leaves. most_idle: searches without a block after which it leaves. worst: the
    key that no other is worse than. seed: 0, or of blocks taken in a random order.
    """

    bits: Any
    most_inside: int
    most_work: int
    most_idle: int
    worst: Any
    seed: Any


def take_block(comes_before: Any) -> Loop:
    """Take the marked block whose key comes before the others' for a core; -1 where there is none to take.

    Until it gives the block back, and its `busy`, the run does not end. Where no block is marked or taken, and none was
    taken since this core began to look, the run has ended.
    """

    def take_block(core, cores, seed, draw, blocks):
        place, num_blocks = core * _SPREAD, len(blocks.marked)
        before = 0
        for c in range(cores):
            before += blocks.takes[c * _SPREAD]
        exchange(blocks.busy, place, 1)
        found, num_marked, drawn = -1, 0, np.uint64(draw)
        for b in range(num_blocks):
            if blocks.marked[b] != 0:
                num_marked += 1
                if blocks.taken[b] == 0:
                    if found < 0:
                        found = b
                    elif seed != 0:
                        drawn = drawn * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                        found = b if drawn >> np.uint64(62) == 0 else found
                    elif comes_before(blocks.keys[b], blocks.keys[found]):
                        found = b
        if found >= 0 and exchange(blocks.taken, found, 1) == 0:
            exchange(blocks.takes, place, blocks.takes[place] + 1)
            exchange(blocks.marked, found, 0)
            return found
        exchange(blocks.busy, place, 0)
        if num_marked == 0:
            others, after = 0, 0
            for c in range(cores):
                others += blocks.busy[c * _SPREAD]
            for b in range(num_blocks):
                others += blocks.marked[b]
            for c in range(cores):
                after += blocks.takes[c * _SPREAD]
            if others == 0 and before == after:
                exchange(blocks.state, 0, ENDED)
        return -1

    return take_block


def run_blocks(f: Functions) -> Loop:
    """Take and compute blocks until none is marked and none is taken, or for a while; one core of `cores`.

    `outbox` has the last records of all vertices; `queue` [1 << bits] is this core's own. Returns the vertices that
    computed, the blocks taken, the edges that these have, and the edges that were read.
    """
    deliver, merge = f.deliver, f.merge
    take = take_block(f.is_better)
    current, is_better, compute_vertex, commit = f.current, f.is_better, f.compute_vertex, f.commit

    def run_blocks(
        core, cores, limits, arguments, in_edges, out_edges, owned, fields, outbox, empty, contributions, total,
        blocks, queue,
    ):  # fmt: skip
        offsets, stops, sources, columns = in_edges.offsets, in_edges.stops, in_edges.ends, in_edges.columns
        ids, records, dirty = owned.ids, outbox.records, blocks.dirty
        n, bits = len(dirty), limits.bits
        place, mask = core * _SPREAD, len(queue) - 1
        ran, loaded, block_edges, edges, idle = 0, 0, np.int64(0), np.int64(0), 0
        draw = np.uint64(limits.seed) + np.uint64(core)
        while edges < limits.most_work and idle < limits.most_idle:
            if blocks.state[0] != RUN or has_fault():
                break
            found = take(core, cores, limits.seed, draw, blocks)
            draw = draw * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            if found < 0:
                idle += 1
                continue
            idle = 0
            blocks.keys[found] = limits.worst
            begin = found << bits
            end = min(n, begin + (1 << bits))
            head, count, inside = 0, 0, 0
            for v in range(begin, end):
                if dirty[v] != 0:
                    queue[count] = v
                    count += 1
            loaded += 1
            block_edges += np.int64(offsets[end] - offsets[begin])
            while count > 0 and inside < limits.most_inside and not has_fault():
                v = queue[head]
                head = (head + 1) & mask
                count -= 1
                inside += 1
                exchange(dirty, v, 0)
                best = current(fields.states, v)
                slots = empty
                has = False
                for e in range(offsets[v], stops[v]):
                    s = sources[e]
                    _, value = deliver(arguments, load_row(records, s), ids, s, v, load_row(columns, e))
                    key = value[0]
                    if not is_better(best, key) and (has or is_better(key, best)):
                        slots = merge(v, slots, has, value)
                        best = slots[0]
                        has = True
                edges += np.int64(stops[v] - offsets[v])
                if not has:
                    continue
                ran += 1
                outcome = compute_vertex(v, arguments, owned, fields, slots, has, ())
                _, is_sender, total = commit(
                    v, outcome, arguments, owned, fields, outbox, contributions, total
                )
                if not is_sender:
                    continue
                record = load_row(records, v)
                for e in range(out_edges.offsets[v], out_edges.stops[v]):
                    t = out_edges.ends[e]
                    _, value = deliver(arguments, record, ids, v, t, load_row(out_edges.columns, e))
                    if is_better(value[0], current(fields.states, t)):
                        b = np.int64(t) >> bits
                        if b == found:
                            if dirty[t] == 0:
                                dirty[t] = 1
                                queue[(head + count) & mask] = t
                                count += 1
                        else:
                            exchange(dirty, t, 1)
                            if is_better(value[0], blocks.keys[b]):
                                blocks.keys[b] = value[0]
                            exchange(blocks.marked, b, 1)
                edges += np.int64(out_edges.stops[v] - out_edges.offsets[v])
            if count > 0:
                exchange(blocks.marked, found, 1)
            exchange(blocks.taken, found, 0)
            exchange(blocks.busy, place, 0)
        if (edges >= limits.most_work or has_fault()) and blocks.state[0] == RUN:
            exchange(blocks.state, 0, LEAVE)
        return ran, loaded, block_edges, edges

    return run_blocks
