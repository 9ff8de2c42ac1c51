"""A pytest plugin: writes how many calls the NetworkX backend answered, by function, to the file SERVED_CALLS."""

import json
import os
from pathlib import Path


def pytest_sessionfinish() -> None:
    from sigps.networkx.serving import CALLS

    Path(os.environ["SERVED_CALLS"]).write_text(json.dumps(CALLS))
