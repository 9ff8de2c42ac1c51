"""What all tests share: real data, ranks as threads, and the battery of tiny graphs."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from battery import BATTERY, Sample
from covering import quick_items
from hypothesis import settings
from places import REPOSITORY
from thread_group import run_ranks as _run_ranks

from sigps.device.cuda import find_gpu
from sigps.engine.cpu import engine
from sigps.errors import DeviceError

settings.register_profile("no deadline", deadline=None)  # machines differ, and wait for others
settings.load_profile("no deadline")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`, which `scripts/test --quick` gives."""
    parser.addoption("--quick", action="store_true", help="each feature once: see CONTRIBUTING.md")


def pytest_configure(config: pytest.Config) -> None:
    """Let apps be interpreted only under `--quick`; what compiles is tested with programs made for it."""
    if config.getoption("--quick"):
        import app_judges  # which takes NetworkX and SciPy

        app_judges.RUNS[:] = app_judges.QUICK_RUNS


@pytest.hookimpl(trylast=True)  # after `-m` and `-k`, so that what they leave is covered
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what `--quick` keeps of the tests collected."""
    if config.getoption("--quick"):
        kept = quick_items(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was collected, which lives as long as the session: 0.4 s each full time."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def priority_order_on_tiny_graphs() -> Iterator[None]:
    """Let tiny graphs, of which most tests are, run in priority order as larger ones do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "pays_in_priority_order", lambda **_: True)
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real graphs, or skip where it is absent."""
    return _folder("SIGPS_DATA", "data")


@pytest.fixture(scope="session")
def conformance_dir() -> Path:
    """Return the folder of the LDBC Graphalytics graphs, or skip where it is absent."""
    return _folder("SIGPS_CONFORMANCE", "conformance")


@pytest.fixture(scope="session")
def run_ranks() -> Callable[..., list[Any]]:
    """Return `run_ranks(size, function)`: `function(group)` on threads, the results by rank."""
    return _run_ranks


@pytest.fixture(params=list(BATTERY), scope="session")
def sample(request: pytest.FixtureRequest) -> Sample:
    """Return each tiny graph of the battery in turn."""
    return BATTERY[request.param]


@pytest.fixture(scope="session")
def battery() -> dict[str, Sample]:
    """Return the battery: name to the arguments of `Graph.from_edges`."""
    return BATTERY


@pytest.fixture(scope="session")
def mpirun() -> str:
    """Return the launcher beside this Python or on the path, or skip where it or mpi4py is missing."""
    beside = Path(sys.executable).with_name("mpirun")
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("no mpirun beside this Python or on the path, or no mpi4py: pip install 'sigps[mpi]'")
    return found


@pytest.fixture(autouse=True)
def _gpu(request: pytest.FixtureRequest) -> None:
    """Skip what is marked `gpu` where there is none; the reason says what is missing."""
    if request.node.get_closest_marker("gpu") is not None:
        try:
            find_gpu()
        except DeviceError as error:
            pytest.skip(str(error))


def _folder(variable: str, name: str) -> Path:
    folder = Path(os.environ.get(variable, REPOSITORY.parent / "shared" / name))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set {variable} to where the {name} graphs lie")
    return folder


@pytest.fixture
def _little_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads share what one would do alone: small supersteps, lists and pushes."""
    from sigps.engine.cpu import edge_commit, message_lists, records, work
    from sigps.engine.cpu import engine as in_memory
    from sigps.engine.cpu import push as scatter

    monkeypatch.setattr(in_memory, "most_work_alone", lambda num_threads: -1)
    monkeypatch.setattr(records, "_WORTH_A_PART", 100)
    monkeypatch.setattr(edge_commit, "_WORTH_A_PART", 100)
    monkeypatch.setattr(message_lists, "_WORTH_SHARING", 50)
    monkeypatch.setattr(work, "_WORTH_SPLITTING", 10)
    monkeypatch.setattr(scatter, "_DIRECT_EDGES", 0)
    monkeypatch.setattr(scatter, "_THREADS_FOR_BINS", 2)
    monkeypatch.setattr(scatter, "_ROUND_EDGES", 50)
