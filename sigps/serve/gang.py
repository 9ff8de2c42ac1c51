"""The turns of a job that runs on several devices: it has all of them for a lease together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sigps.serve.devices import SharedDevice, Suspended
from sigps.serve.runs import Run

__all__ = ["GangTurns"]

log = logging.getLogger(__name__)


class GangTurns:
    """The turns of one run on several devices (`system.turns.Turns`).

    It asks for one device after another, in the order of the pool's, and keeps those that it has meanwhile: so two such
    runs never wait for each other. What it keeps is charged, though it does not run yet.

    Args:
        run: What runs; others are not joined to it.
        devices: In the order of the pool's.
        lease_seconds: Of a lease.
    """

    def __init__(self, run: Run, devices: Sequence[SharedDevice], lease_seconds: float) -> None:
        self.lease_seconds = lease_seconds
        self._run, self._devices = run, devices

    def wait(self, save: Callable[[], bool] | None) -> None:
        """Give all devices back, and wait until it has all again, or its state is saved.

        Raises:
            CancelledError: If the run was cancelled.
            Suspended: If it was to save its state, and has.
        """
        run = self._run
        while True:
            self.end()
            if run.is_suspending:
                if save is not None and save():
                    raise Suspended
                run.is_suspending = False
                log.warning("job %d goes on: its state could not be saved", run.number)
            if all(device.request(run) for device in self._devices) and not run.is_suspending:
                return

    def end(self) -> None:
        """Give all devices back for now."""
        for device in self._devices:
            device.give_back(self._run)

    def leave(self) -> None:
        """Give back all that the run holds."""
        for device in self._devices:
            device.leave(self._run)
