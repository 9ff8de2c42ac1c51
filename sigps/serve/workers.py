"""What a server remembers of its jobs beyond the life of its worker (`supervisor`)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Kept"]

_MOST_RESULTS = 256
"""Each of one or two descriptors, of which a process may have a thousand."""


@dataclass
class Kept:
    """What outlives a worker.

    Attributes:
        born: The server's name, by which its jobs are known.
        first_number: Of the next worker's own jobs.
        named: By which questions jobs with a name that have not ended were submitted, by number.
        suspended: Those of them that are suspended.
        results: What came of those that have ended, as the worker keeps it, until it forgets it; the last ones.
        why: How the last worker ended; empty for the first.
    """

    born: str
    first_number: int = 0
    named: dict[int, dict[str, Any]] = field(default_factory=dict)
    suspended: set[int] = field(default_factory=set)
    results: OrderedDict[int, Any] = field(default_factory=OrderedDict)
    why: str = ""
    _outlived: Counter[int] = field(default_factory=Counter)

    def take(self, note: dict[str, Any], result: Any = None) -> None:
        """Take what a worker says of a job, and what it passes with that.

        >>> kept = Kept("a")
        >>> for note in ({"do": "took", "job": 0, "question": {"name": "n"}}, {"do": "took", "job": 1}):
        ...     kept.take(note)
        >>> kept.named, kept.first_number
        ({0: {'name': 'n'}}, 2)
        """
        number = note["job"]
        if note["do"] == "took":
            self.first_number = max(self.first_number, number + 1)
            if note.get("question") is not None:
                self.named[number] = note["question"]
        elif note["do"] == "ended":
            self.named.pop(number, None)
            self.suspended.discard(number)
            if result is not None:
                self.results[number] = result
                while len(self.results) > _MOST_RESULTS:
                    self.results.popitem(last=False)
        elif note["do"] == "forgot":
            self.results.pop(number, None)
        elif note["do"] == "suspended":
            self.suspended.add(number)
        elif note["do"] == "resumed":
            self.suspended.discard(number)

    def forget_after(self, workers: int) -> None:
        """Count the worker that ended for each job with a name, and forget those that outlived so many."""
        for number in list(self.named):
            self._outlived[number] += 1
            if self._outlived[number] >= workers:
                del self.named[number]
