"""Limits of memory, as Linux tells them of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigps import host_memory
from sigps.errors import GraphError
from sigps.graph.memory import require_memory
from sigps.group import Alone

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 GiB, 32 of them free, whose files are in a folder."""
    monkeypatch.setattr(host_memory.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 << 20}.get)
    monkeypatch.setattr(host_memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(host_memory, "_GROUPS", tmp_path / "cgroup")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 1 kB\nMemAvailable:   33554432 kB\n")
    return tmp_path


def join(machine: Path, line: str) -> None:
    with open(machine / "proc" / "self" / "cgroup", "a") as file:
        file.write(line + "\n")


def limit(folder: Path, version: int, most: int | str, used: int, droppable: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    (folder / names[0]).write_text(f"{most}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {droppable}\n")


def test_a_machine_without_groups(machine: Path) -> None:
    assert (host_memory.machine_memory(), host_memory.available_memory()) == (64 * GIB, 32 * GIB)


@pytest.mark.parametrize("version", [1, 2])
def test_the_least_limit_around_a_process_counts(machine: Path, version: int) -> None:
    root = machine / "cgroup" / ("memory" if version == 1 else "")
    join(machine, "4:cpu,memory:/batch/job" if version == 1 else "0::/batch/job")
    limit(root / "batch" / "job", version, 2**63 - 4096 if version == 1 else "max", GIB)
    limit(root / "batch", version, 8 * GIB, 5 * GIB, droppable=GIB)
    assert (host_memory.machine_memory(), host_memory.available_memory()) == (8 * GIB, 4 * GIB)


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_sees_its_group_at_the_root(machine: Path, version: int) -> None:
    join(machine, "4:memory:/docker/3f" if version == 1 else "0::/../../docker/3f")
    limit(machine / "cgroup" / ("memory" if version == 1 else ""), version, 2 * GIB, 3 * GIB)
    assert (host_memory.machine_memory(), host_memory.available_memory()) == (2 * GIB, 0)


def test_what_does_not_fit_the_group_is_refused(machine: Path) -> None:
    require_memory(10 * GIB, "vertices", Alone())
    join(machine, "0::/")
    limit(machine / "cgroup", 2, 8 * GIB, 0)
    with pytest.raises(GraphError, match="at least 11 GB, and this machine has 9 GB"):
        require_memory(10 * GIB, "vertices", Alone())
