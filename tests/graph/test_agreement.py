"""Agreement: what fails on one rank fails on all, with the rank's name."""

from __future__ import annotations

import pytest

from sigps.errors import ConfigError, GraphError
from sigps.graph.agreement import together
from sigps.group import Alone


def test_results_come_back(run_ranks):
    assert run_ranks(3, lambda group: together(lambda: group.rank * 2, group)) == [0, 2, 4]


def test_alone_raises_the_error_itself():
    def work():
        raise ConfigError("wrong")

    with pytest.raises(ConfigError, match=r"^wrong$"):
        together(work, Alone())


def test_the_failing_rank_keeps_its_error_and_the_others_name_it(run_ranks):
    def work(group):
        def fail_on_some():
            if group.rank:
                raise ValueError(f"bad {group.rank}")

        try:
            together(fail_on_some, group)
        except (GraphError, ValueError) as error:
            return type(error), str(error)

    assert run_ranks(3, work) == [
        (GraphError, "rank 1 failed: ValueError: bad 1"),
        (ValueError, "bad 1"),
        (ValueError, "bad 2"),
    ]
