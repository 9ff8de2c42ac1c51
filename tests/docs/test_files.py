"""The page about files: it has every key of a job and of a server's file, and their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import yaml
from places import REPOSITORY
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sigps.job.config import JobConfig
from sigps.serve.pool_file import HttpSection, OwnCodeSection, TenantSection, _Keys

PAGE = (REPOSITORY / "docs/reference/files.md").read_text()
SERVER = {"": _Keys, "tenants.NAME.": TenantSection, "own_code.": OwnCodeSection, "http.": HttpSection}


def rows(text: str) -> dict[str, str]:
    """The default of each key in the page's tables, as it is written there."""
    found = {}
    for line in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE):
        keys, *_, default = (cell.strip() for cell in re.split(r" \| ", line))
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", keys), default)
    return found


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        parts = (field.annotation, *get_args(field.annotation))
        sections = [t for t in parts if isinstance(t, type) and issubclass(t, BaseModel)]
        if sections and model is JobConfig:
            yield from fields(sections[0], f"{name}.")
        if not sections or f"{prefix}{name}" == "graph":
            yield prefix + name, field


def disagreement(key: str, field: FieldInfo, written: str) -> str:
    """Where a default is a value, it stands on the page as YAML; else words do."""
    default: Any = field.default
    if field.is_required():
        return "" if written.startswith("must be given") else f"{key} must be given"
    if default is None or default == {} or isinstance(default, BaseModel):
        return ""
    said = re.match(r"`([^`]+)`", written)
    return "" if said and yaml.safe_load(said[1]) == default else f"{key}: {written}, not {default!r}"


def test_every_key_of_a_job() -> None:
    job, _, _ = PAGE.partition("## A server's file")
    written, known = rows(job), dict(fields(JobConfig))
    assert set(written) == set(known)
    assert [text for key in known if (text := disagreement(key, known[key], written[key]))] == []


def test_every_key_of_a_server() -> None:
    written = rows(PAGE.partition("## A server's file")[2])
    known = {prefix + name: f for prefix, model in SERVER.items() for name, f in model.model_fields.items()}
    assert set(written) == set(known)
    assert [text for key in known if (text := disagreement(key, known[key], written[key]))] == []
