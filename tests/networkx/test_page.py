"""What docs/networkx.md says of how many functions are served; its program is run by tests/docs/test_pages.py."""

import pytest
from places import REPOSITORY

import sigps.networkx.backend  # noqa: F401  it registers what is served
from sigps.networkx.expected_failures import EXPECTED_FAILURES
from sigps.networkx.serving import SERVED


@pytest.mark.parametrize("page", ["docs/networkx.md", "CHANGELOG.md"])
def test_how_many_are_served(page: str) -> None:
    assert f"{len(SERVED)} functions" in (REPOSITORY / page).read_text()


def test_every_expected_failure_has_a_reason() -> None:
    assert all(len(reason) > 20 for reason in EXPECTED_FAILURES.values())
