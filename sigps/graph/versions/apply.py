"""A batch applied to a version: ids to numbers, the rows that it touches rewritten, and what follows from the graph."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.rows import Duplicates
from sigps.graph.edge_hashes import hash_sum
from sigps.graph.ids import Ids
from sigps.graph.user_arrays import as_ids
from sigps.graph.versions.batch import Changes, as_changes
from sigps.graph.versions.editing import Edits, are_compiled, plan_edits
from sigps.graph.versions.new_vertices import numbering, renumbered
from sigps.graph.versions.rewriting import both_sides, change_rows
from sigps.graph.versions.row_changes import RowChanges, distinct, row_order
from sigps.graph.versions.rows import WORTH_COMPILING, RowContents, VersionRows
from sigps.graph.versions.stored import Batch
from sigps.group import together

__all__ = ["Family", "Rewriting", "Update", "Version", "apply_batch", "stored_edges", "twin_rows"]


_COMPILED = 1 << 14
"""Compiled loops that are loaded pay from one part in so many edges on."""


@dataclass(frozen=True, eq=False)
class Update:
    """What a batch did to a graph, over all ranks.

    Attributes:
        inserted: Edges given to insert.
        deleted: Stored edges that were deleted; an undirected edge counts twice, a self-loop once.
        missing: Edges given to delete that matched no edge, and ids given to delete that are no vertices.
        new_vertices: Vertices that were not there before.
        deleted_vertices: Vertices that were deleted.
        inserts: This rank's inserted edges as rows hold them, of an undirected graph in both directions.
        deletes: This rank's deleted edges, likewise, with their columns; without those of deleted vertices.
        is_renumbered: Whether vertices have other numbers (gids) than before.
        given: The batch, by ids.
        before: Vertices and edges of the version before.
    """

    inserted: int
    deleted: int
    missing: int
    new_vertices: int
    inserts: RowChanges = field(repr=False)
    deletes: RowChanges = field(repr=False)
    is_renumbered: bool = False
    given: Batch | None = field(default=None, repr=False)
    before: tuple[int, int] = (0, 0)
    deleted_vertices: int = 0


class Family:
    """The versions of one graph, by number, as long as something holds them.

    Attributes:
        lock: Held while batches that waited are applied.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.members: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._next = 0

    def add(self, graph: Any) -> int:
        """Give a graph the next number."""
        number, self._next = self._next, self._next + 1
        self.members[number] = graph
        return number


@dataclass(frozen=True, eq=False)
class Version:
    """The rows of a version, and how it came to be.

    Attributes:
        rows: Out-edges of this rank's rows.
        inward: In-edges, where the graph before had them by target; None else, and of undirected graphs.
        update: What the batch did; None of what follows from a version.
        touched: [rows]: the rows that were rewritten, among them new ones.
        edge_hash: The sum of edge hashes that a fingerprint is made of, where the graph before had one.
        added: The edges that came: of those that a batch inserts, all but repeats that the graph drops. None where
            parallel edges become one.
    """

    rows: VersionRows
    inward: VersionRows | None = None
    update: Update | None = None
    touched: NDArray[np.int64] | None = None
    edge_hash: np.uint64 | None = None
    added: RowChanges | None = None


def apply_batch(
    graph: GraphArrays,
    before: Version | None,
    inserts: Any,
    deletes: Any,
    vertices: ArrayLike | None,
    delete_vertices: ArrayLike | None,
    missing: Literal["count", "error"],
    column_types: Mapping[str, np.dtype[Any]],
    edge_hash: np.uint64 | None,
) -> tuple[dict[str, Any], Version]:
    """Return what differs in the graph after a batch, attributes of `GraphArrays` by name, and its rows. Collective.

    Args:
        graph: The graph before; one process's rows, or this rank's.
        before: Its rows in an arena; None where it is no version yet.
        inserts: As in `Graph.apply`, and so are the next three.
        deletes: See there.
        vertices: See there.
        delete_vertices: See there.
        missing: See there.
        column_types: Of the graph's edge columns.
        edge_hash: Of this rank's rows, where it is known.
    """
    if missing not in ("count", "error"):
        raise GraphError(f"missing={missing!r} is not known; choose one of count, error")
    new, old = together(
        lambda: (as_changes(inserts, "inserts", column_types), as_changes(deletes, "deletes", column_types)),
        graph.group,
    )
    group, rank, sizes = graph.group, graph.group.rank, (graph.num_vertices, graph.num_edges)
    gone_ids = np.empty(0, dtype=np.int64)
    if delete_vertices is not None:
        gone_ids = together(lambda: as_ids(delete_vertices, "delete_vertices").ravel(), group)
    gone, lost_vertices = _gone(graph, gone_ids)
    if missing == "error" and lost_vertices:
        raise GraphError(
            f'{lost_vertices:,} of the {gone_ids.size:,} ids to delete are no vertices. Give missing="count" to '
            "leave such ones out"
        )
    found = numbering(graph, together(lambda: _named(new, vertices, ids_are=graph.ids), group), gone)
    ids, bounds = found.ids, found.bounds
    is_renumbered, num_lost_edges = found.numbers is not None, 0
    if is_renumbered:
        (graph, num_lost_edges), before, edge_hash = renumbered(graph, found), None, None
    num_rows = int(bounds[rank + 1] - bounds[rank])

    inserted, _, _ = _own_rows(graph, bounds, ids, new, inserts=True)
    deleted, is_first, unknown = _own_rows(graph, bounds, ids, old, inserts=False)
    rows = _rows_of(graph, before)
    duplicates = cast("Duplicates", graph.report.duplicates_policy)
    rewriting = Rewriting(rows, deleted, inserted, num_rows, ids.num_vertices, duplicates)
    lost = np.count_nonzero(is_first & ~rewriting.matched)
    counts = [lost, rewriting.gone.size + num_lost_edges, rewriting.growth - num_lost_edges]
    lost, num_deleted, growth = group.all_reduce(np.array(counts), "sum").tolist()
    num_missing = lost + unknown + lost_vertices
    if missing == "error" and num_missing:
        raise GraphError(_missing_text(old, num_missing, graph))
    newer = rewriting.newer()
    inward = _inward_of(graph, before)
    if inward is not None:
        back = deleted.reversed(), inserted.reversed()
        inward = Rewriting(inward, *back, num_rows, ids.num_vertices, duplicates).newer()
    touched = rewriting.touched
    if edge_hash is not None:
        edge_hash = _hash_after(edge_hash, *rewriting.differs, graph.first_row)
    named = np.empty(0, dtype=np.int64) if vertices is None else as_ids(vertices, "vertices").ravel()
    update = Update(
        new.size,
        num_deleted,
        num_missing,
        found.num_new,
        inserted,
        rewriting.gone,
        is_renumbered=is_renumbered,
        given=Batch(new, old, named, gone_ids),
        before=sizes,
        deleted_vertices=gone.size,
    )
    num_edges = sizes[1] + growth
    changed = {
        "ids": ids,
        "row_bounds": bounds,
        "num_edges": num_edges,
        "report": replace(graph.report, num_vertices=ids.num_vertices, edges_stored=num_edges),
        "vertex_columns": {n: _padded(c, num_rows) for n, c in graph.vertex_columns.items()},
    }
    return changed, Version(newer, inward, update, touched, edge_hash, rewriting.added)


def twin_rows(
    twin: VersionRows, graph: Version, num_vertices: int, *, directed: bool, marks: bool, simple: bool
) -> Version | None:
    """Return what `Graph.undirected` or `Graph.both_ways` is after a batch; None where it is to be made anew.

    Args:
        twin: The rows before.
        graph: The graph after the batch, in one process.
        num_vertices: Of the graph.
        directed: Whether the graph is.
        marks: Whether it is `both_ways`.
        simple: Whether loops and repeats are left out.
    """
    assert graph.update is not None
    if directed and graph.inward is None:
        return None
    changes = graph.update.inserts, graph.update.deletes
    rows = distinct(np.concatenate([part for change in changes for part in (change.rows, change.ends)]))
    out = graph.rows.contents(rows)
    none = RowContents(rows, out.offsets * 0, out.ends[:0], {n: c[:0] for n, c in out.columns.items()})
    inward = none if graph.inward is None else graph.inward.contents(rows)
    newer = twin.replaced(both_sides(out, inward, num_vertices, marks=marks, simple=simple), num_vertices)
    return Version(newer, touched=rows)


def _named(new: Changes, vertices: ArrayLike | None, ids_are: Ids) -> NDArray[Any]:
    """Return the ids that a batch names as vertices."""
    parts = [new.sources, new.targets]
    if vertices is not None:
        parts.append(as_ids(vertices, "vertices").ravel())
    parts = [part for part in parts if part.size]
    kinds = {part.dtype.kind == "U" for part in parts}
    if len(kinds) > 1:
        raise GraphError("some new ids are strings and some are integers; give all of them as strings")
    if not parts:
        return np.empty(0, dtype=ids_are.dtype)
    return np.concatenate([part if True in kinds else part.astype(np.int64) for part in parts])


def _gone(graph: GraphArrays, oids: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the gids of vertices to delete, ascending and distinct, and how many distinct ids are none. Collective."""
    oids = np.unique(oids)
    if not oids.size or not graph.num_vertices:
        return np.empty(0, dtype=np.int64), oids.size
    gids = graph.ids.to_gids(oids)
    return np.sort(gids[gids >= 0]), int(np.count_nonzero(gids < 0))


def stored_edges(
    graph: GraphArrays, ids: Ids, edges: Changes, *, inserts: bool
) -> tuple[RowChanges, NDArray[np.bool_], int]:
    """Return edges as a graph stores them, by gid; which are no reverses; how many have an unknown end.

    Collective where ids have a table.
    """
    if not edges.size and (ids.table is None or graph.group.size == 1):
        nothing = np.empty(0, dtype=np.int64)
        return RowChanges(nothing, nothing, edges.columns), np.empty(0, dtype=np.bool_), 0
    sources, targets = ids.to_gids(edges.sources), ids.to_gids(edges.targets)
    known = (sources >= 0) & (targets >= 0)
    num_unknown = known.size - int(np.count_nonzero(known))
    if inserts and graph.report.self_loops_policy == "drop":
        known &= sources != targets
    changes = RowChanges(sources, targets, edges.columns).at(known)
    is_first = np.ones(changes.size, dtype=np.bool_)
    if not graph.directed:
        changes, is_first = changes.mirrored()
    return changes, is_first, num_unknown


def _own_rows(
    graph: GraphArrays, bounds: NDArray[np.int64], ids: Ids, edges: Changes, *, inserts: bool
) -> tuple[RowChanges, NDArray[np.bool_], int]:
    """Return the edges as this rank's rows hold them, which are no reverses, and how many have an unknown end.

    Collective.
    """
    changes, is_first, num_unknown = stored_edges(graph, ids, edges, inserts=inserts)
    if graph.group.size > 1:
        rank = graph.group.rank
        own = (changes.rows >= bounds[rank]) & (changes.rows < bounds[rank + 1])
        changes, is_first = changes.at(own), is_first[own]
        changes = RowChanges(changes.rows - bounds[rank], changes.ends, changes.columns)
    return changes, is_first, num_unknown


class Rewriting:
    """The rows that a batch touches, before they are written: edited in place where they have many edges.

    Attributes:
        touched: The rows, ascending.
        matched: [deletes]: which matched an edge.
        gone: The edges that are deleted, as rows hold them.
        growth: How many more edges there are afterwards.
    """

    def __init__(
        self,
        rows: VersionRows,
        deleted: RowChanges,
        inserted: RowChanges,
        num_rows: int,
        num_vertices: int,
        duplicates: Duplicates,
    ) -> None:
        self._num_rows = num_rows
        inserted = inserted.at(row_order(inserted.rows, inserted.ends))
        self.touched = touched = _rows_in_order(deleted, inserted)
        self._edits: Edits | None = None
        self.added: RowChanges | None = None
        is_plain = duplicates in ("keep", "drop") and not deleted.columns
        least = WORTH_COMPILING // (_COMPILED if are_compiled() else 1)
        if is_plain and rows.num_edges_of(touched) >= least:
            more = np.diff(np.searchsorted(inserted.rows, touched), append=inserted.size)
            self._rows = rows.with_room_for(touched, more, num_rows)
            begins, stops, ends, columns = self._rows.shared()
            drops = duplicates == "drop"
            edits, self.matched = plan_edits(
                touched, begins, stops, ends, deleted, inserted, drops_repeats=drops
            )
            self._edits, self.growth, self.added = edits, int(edits.growth.sum()), edits.inserts
            if not edits.gone.size:
                nothing = edits.gone
                self.gone = RowChanges(nothing, nothing, {name: c[:0] for name, c in columns.items()})
                return
            at = edits.gone
            of = np.repeat(touched, np.diff(np.searchsorted(edits.gone_at, _offsets(edits.lengths))))
            lost = {name: column[at] for name, column in columns.items()}
            self.gone = RowChanges(of, ends[at].astype(np.int64), lost)
            return
        self._rows = rows
        self._before = before = rows.contents(touched)
        self._found, self.matched, self.gone = change_rows(
            before, deleted, inserted, num_vertices, duplicates
        )
        self.growth = self._found.ends.size - before.ends.size
        if duplicates == "keep" or (duplicates == "drop" and self.growth == inserted.size - self.gone.size):
            self.added = inserted
        elif duplicates == "drop":  # rows have each end once
            there, now, went = (
                edges.rows * num_vertices + edges.ends for edges in (*self.differs, self.gone)
            )
            self.added = self.differs[1].at(~np.isin(now, there) | np.isin(now, went))

    @property
    def differs(self) -> tuple[RowChanges, RowChanges]:
        """The edges that are no longer there as they were, and those that are there instead."""
        if self._edits is not None:
            return self.gone, self._edits.inserts
        return _edges_of(self._before), _edges_of(self._found)

    def newer(self) -> VersionRows:
        """Write them."""
        if self._edits is not None:
            return self._rows.edited(self._edits, self._num_rows)
        return self._rows.replaced(self._found, self._num_rows)


def _rows_in_order(deleted: RowChanges, inserted: RowChanges) -> NDArray[np.int64]:
    """Return the distinct rows, ascending; those of the inserted edges ascend already."""
    if not deleted.size:
        kept = np.ones(inserted.size, dtype=np.bool_)
        np.not_equal(inserted.rows[1:], inserted.rows[:-1], out=kept[1:])
        return inserted.rows[kept]
    return distinct(np.concatenate([deleted.rows, inserted.rows]))


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])


def _edges_of(rows: RowContents) -> RowChanges:
    return RowChanges(rows.rows[rows.of_edges()], rows.ends, rows.columns)


def _rows_of(graph: GraphArrays, before: Version | None) -> VersionRows:
    if before is not None:
        return before.rows
    return VersionRows.of(graph.offsets, graph.targets, graph.columns)


def _inward_of(graph: GraphArrays, before: Version | None) -> VersionRows | None:
    """Return the in-edges in an arena, where the graph has them: in-edges that nobody asked for are not kept."""
    if before is not None and before.inward is not None:
        return before.inward
    if not graph.directed or graph.by_target is None:
        return None
    inward = graph.by_target
    return VersionRows.of(inward.offsets, inward.sources, inward.columns)


def _padded(column: NDArray[Any], num_rows: int) -> NDArray[Any]:
    more = num_rows - column.shape[0]
    return (
        np.concatenate([column, np.zeros((more, *column.shape[1:]), dtype=column.dtype)]) if more else column
    )


def _hash_after(before: np.uint64, gone: RowChanges, found: RowChanges, first_row: int) -> np.uint64:
    def of(edges: RowChanges) -> int:
        return int(
            hash_sum(edges.rows + first_row, edges.ends.astype(np.uint64, copy=False), edges.columns.values())
        )

    return np.uint64((int(before) - of(gone) + of(found)) % 2**64)


def _missing_text(old: Changes, num_missing: int, graph: GraphArrays) -> str:
    return (
        f"{num_missing:,} of the {old.size:,} edges to delete match no edge of {graph.num_edges:,}. Give "
        'missing="count" to leave such ones out'
    )
