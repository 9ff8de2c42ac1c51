"""Every served function has NetworkX's own name, arguments and defaults."""

import inspect

import networkx as nx
import pytest

from sigps.networkx.backend import BACKEND
from sigps.networkx.serving import SERVED


def test_how_many_are_served() -> None:
    assert len(SERVED) >= 60


@pytest.mark.parametrize("name", sorted(SERVED))
def test_signature(name: str) -> None:
    original = nx.utils.backends._registered_algorithms[name].orig_func
    theirs = inspect.signature(original).parameters
    ours = SERVED[name].signature.parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_what_is_not_served_is_no_attribute() -> None:
    assert not hasattr(BACKEND, "louvain_communities")
    assert "pagerank" in dir(BACKEND)
