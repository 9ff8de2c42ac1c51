"""What can be wrong with a rank, in words. Imports Python's own modules alone, as the watchdog process does."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fault"]

_SECONDS = {
    "is stopped": ": for {:.1f} s",
    "is silent": ": no heartbeat for {:.1f} s",
    "hangs": ": it has computed for {:.1f} s",
    "failed": ": {:.1f} s ago, and the others wait for it",
    "ended": ": {:.1f} s ago, and the others wait for it",
}


@dataclass(frozen=True)
class Fault:
    """What is wrong with one rank.

    Attributes:
        where: What it was doing: "in superstep 5", "while loading the graph".
        what: "died", "was ended by SIGTERM", "lost its launcher", "is stopped", "is silent", "hangs", "failed" or
            "ended".
        seconds: For how long; without meaning for a death.
    """

    rank: int
    host: str
    where: str
    what: str
    seconds: float = 0.0

    def __str__(self) -> str:
        how = _SECONDS.get(self.what, "").format(self.seconds)
        return f"rank {self.rank} on host {self.host} {self.what} {self.where}{how}"

    def describe(self, last_log: str | None) -> str:
        """Say what happened and from where the run can go on.

        >>> print(Fault(3, "n17", "in superstep 41", "died").describe("log/20261121T190000-00000040"))
        rank 3 on host n17 died in superstep 41. The last log is log/20261121T190000-00000040: continue with --resume
        """
        if last_log:
            return f"{self}. The last log is {last_log}: continue with --resume"
        return f"{self}. No log was written yet; `checkpoint: {{dir: log, every: 10}}` writes one every 10 supersteps."
