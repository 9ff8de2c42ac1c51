"""What can be wrong with a rank, in words. Imports Python's own modules alone, as the watchdog process does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Fault"]


@dataclass(frozen=True)
class Fault:
    """What is wrong with one rank.

    Attributes:
        superstep: The superstep that it is in, by its last report; None before the first.
        seconds: How long it is without a heartbeat, has computed, or is gone by an exception; 0 for a death.
    """

    rank: int
    host: str
    superstep: int | None
    what: Literal["died", "is silent", "hangs", "failed"]
    seconds: float = 0.0

    def __str__(self) -> str:
        where = "before superstep 0" if self.superstep is None else f"in superstep {self.superstep}"
        how = {
            "died": "",
            "is silent": f": no heartbeat for {self.seconds:.1f} s",
            "hangs": f": it has computed for {self.seconds:.1f} s",
            "failed": f": it left {self.seconds:.1f} s ago, and the others wait for it",
        }[self.what]
        return f"rank {self.rank} on host {self.host} {self.what} {where}{how}"

    def describe(self, last_log: str | None) -> str:
        """Say what happened and from where the run can go on.

        >>> print(Fault(3, "n17", 41, "died").describe("log/20261121T190000-00000040"))
        rank 3 on host n17 died in superstep 41. The last log is log/20261121T190000-00000040: continue with --resume
        """
        rest = f"The last log is {last_log}: continue with --resume" if last_log else "No log was written."
        return f"{self}. {rest}"
