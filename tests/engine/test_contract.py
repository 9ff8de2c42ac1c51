"""The contract of engines: a new one needs its folder and one line of the table."""

from __future__ import annotations

import numpy as np
import pytest
from battery import BATTERY
from fake_engine import FakeSpec
from thread_group import ThreadGroup, run_ranks

from sigps import ConfigError, Result, run
from sigps.apps import SSSP, WCC
from sigps.engine import table
from sigps.engine.contract import EngineSpec


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> EngineSpec:
    """Put one line into the table."""
    spec = FakeSpec()
    monkeypatch.setattr(table, "ENGINES", (*table.ENGINES, spec))
    return spec


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("graph", ["grid", "two_components", "self_loop", "isolated"])
def test_an_engine_written_against_the_contract_runs_programs(graph: str, size: int) -> None:
    def run_fake(group: ThreadGroup) -> Result:
        return run(WCC(), BATTERY[graph].build(group=group), device="fake")

    judge = run(WCC(), BATTERY[graph].build(), device="python")
    result = run_ranks(size, run_fake)[0]
    assert result.device == "fake"
    assert result["component"].tolist() == judge["component"].tolist()
    assert result.reason == "converged"
    assert [(s.active, s.messages) for s in result.stats] == [(s.active, s.messages) for s in judge.stats]


@pytest.mark.usefixtures("fake")
def test_an_engine_of_the_table_is_asked_for_by_its_name() -> None:
    assert "fake" in table.device_names()
    assert table.engine_of("fake").device == "fake"
    with pytest.raises(ConfigError, match=r"there is no device 'abacus'; choose auto, .*fake"):
        run(WCC(), BATTERY["path"].build(), device="abacus")


@pytest.mark.usefixtures("fake")
def test_auto_does_not_choose_an_engine_that_does_not_offer_itself() -> None:
    assert run(WCC(), BATTERY["path"].build()).device == "cpu"


def test_every_engine_of_the_table_has_a_name_of_its_own() -> None:
    names = table.device_names()
    assert names[0] == "auto"
    assert len(set(names)) == len(names) == len(table.ENGINES) + 1
    assert [table.engine_of(name).device for name in names[1:]] == list(names[1:])


def test_engines_say_what_they_are_without_loading_a_compiler_or_a_driver() -> None:
    """The table is read where a job file is checked."""
    import subprocess
    import sys

    script = (
        "import sys; from sigps.engine.table import ENGINES; "
        "print([m for m in ('numba', 'cupy', 'mpi4py') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_engine_that_lacks_something_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="trace= works on device='python'"):
        run(SSSP(source=0), BATTERY["path"].build(), device="cpu", trace=[0])


def test_fields_come_back_in_the_order_of_ids() -> None:
    graph = BATTERY["star_in"].build()
    result = run(WCC(), graph, device="cpu")
    assert np.array_equal(result.ids, np.sort(result.ids))


def test_a_gpu_is_called_cuda() -> None:
    with pytest.raises(ConfigError, match=r"there is no device 'gpu'; .*; did you mean 'cuda'\?"):
        run(WCC(), BATTERY["path"].build(), device="gpu")
