"""Driving: what measures share that are made of several runs, one after another, with a little NumPy in between."""

import numpy as np

import sigps

MOST_VALUES = 1 << 25  # of a field that are kept at a time, of some runs


class Runs:
    """Runs with the same options, and what they took. Collective, as `sigps.run` is."""

    def __init__(self, options):
        self.options, self.stats, self.last = options, [], None

    def run(self, program, graph, **more):
        """Run a program; `more` options go before those of all runs."""
        self.last = sigps.run(program, graph, **(self.options | more))
        self.stats.extend(self.last.stats)
        return self.last

    def each(self, program, graph, sources, **given):
        """Run a program from each source, many side by side; yield it when its run is the last, for `field`."""
        size = max(1, min(256, MOST_VALUES // max(1, graph.num_vertices)))
        for first in range(0, max(1, len(sources)), size):
            some = sources[first : first + size]
            results = sigps.run_many(program, graph, source=some, **given, **self.options)
            for source, self.last in zip(some, results, strict=True):
                self.stats.extend(self.last.stats)
                yield source

    def field(self, name, graph):
        """Return a field of the last run, [num_vertices], on every rank; rank 0 alone has it else."""
        return self.gathered(self.last[name][: 0 if graph.group.rank else None], graph)

    def vertices(self, name, graph):
        """Return the numbers of the vertices that a field of the last run names, where it names none the own number.

        [num_vertices], on every rank.
        """
        ids, found = self.last.ids, self.last[name]
        is_none = np.ma.getmaskarray(found) if np.ma.isMaskedArray(found) else found == None  # noqa: E711  of objects
        named = np.where(is_none, ids, np.ma.getdata(found)).astype(ids.dtype)
        return self.gathered(graph.ids.to_gids(named[: 0 if graph.group.rank else None]), graph)

    def gathered(self, values, graph):
        """Return what rank 0 has on every rank; others have nothing."""
        return values if graph.group.size == 1 else np.concatenate(graph.group.all_gather_array(values))

    def as_one(self, graph, fields, aggregators, ids=None, edges=None):
        """Return one result on every rank, with the supersteps of all runs; rank 0 writes its files.

        Its rows are the vertices, or those whose `ids` are given. `edges` are the numbers of tails and of heads in
        ascending order, and values by name.
        """

        def of_edges(tails, heads, values):
            ends = (graph.ids.to_oids(numbers) for numbers in (tails, heads))
            return sigps.EdgeFields(*ends, values, writers=self.last.writers)

        on_edges = edges and of_edges(*edges)
        return sigps.Result(
            ids=graph.ids.to_oids(np.arange(graph.num_vertices)) if ids is None else ids,
            fields=fields,
            reason="converged",
            supersteps=len(self.stats),
            stats=self.stats,
            aggregators=aggregators,
            device=self.last.device,
            writers=self.last.writers,
            edges=edges and (lambda: on_edges),
        )


def numbered(labels):
    """Return the labels as numbers from 0, in the order in which they come first.

    >>> numbered(np.array([7, 2, 7, 5, 2])).tolist()
    [0, 1, 0, 2, 1]
    >>> numbered(np.array([], dtype=int)).tolist()
    []
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
