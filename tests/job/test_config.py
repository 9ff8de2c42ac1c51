"""The job file: what is read, what is refused, and that every mistake is named at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigps.errors import ConfigError
from sigps.job.config import JobConfig, load_job, load_options

Write = Callable[[str], Path]

GOOD = """
program: sigps.apps:PageRank
params: {damping: 0.9, tolerance: 1e-6}
graph: {path: web.txt.xz, format: snap, directed: true, weights: 2}
engine: {device: python, max_supersteps: 7, trace: [1, a]}
partition: {method: metis}
exchange: {transport: auto}
output: {path: ranks.parquet, fields: [rank], top: 3}
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return path

    return write


def refused(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_job(path, overrides)
    return str(caught.value)


def test_every_section_is_read(write: Write) -> None:
    job = load_job(write(GOOD))
    assert job.program == "sigps.apps:PageRank"
    assert job.params == {"damping": 0.9, "tolerance": 1e-6}
    assert (job.graph.format, job.graph.directed, job.graph.weights) == ("snap", True, 2)
    assert (job.engine.device, job.engine.max_supersteps, job.engine.trace) == ("python", 7, [1, "a"])
    assert (job.partition.method, job.exchange.transport) == ("metis", "auto")
    assert (job.output.fields, job.output.top) == (["rank"], 3)


def test_defaults_of_a_short_job(write: Write) -> None:
    job = load_job(write("program: a:B\ngraph: {generator: {grid: {rows: 2, columns: 3}}}"))
    assert job.graph.generator == {"grid": {"rows": 2, "columns": 3}}
    assert (job.engine.device, job.engine.direction, job.engine.precision) == ("auto", "auto", "auto")
    assert (job.engine.max_supersteps, job.engine.threads, job.engine.deterministic) == (None, None, False)
    assert (job.partition.method, job.output.path, job.output.top) == ("edges", None, 10)


def test_the_schedule_is_read_and_set(write: Write) -> None:
    text = "program: a:B\ngraph: {path: g}\n"
    assert load_job(write(text)).engine.schedule == "vertex"
    assert load_job(write(text + "engine: {schedule: edge, direction: auto}\n")).engine.schedule == "edge"
    assert load_job(write(text), ["engine.schedule=edge"]).engine.schedule == "edge"


def test_null_leaves_a_key_out(write: Write) -> None:
    job = load_job(write("program: a:B\ngraph: {path: g, format: null}\nengine:\noutput: {top: null}\n"))
    assert job.graph.format == "auto"
    assert job.graph.load_options == {}
    assert job.output.top == 10


def test_null_parameter_is_kept(write: Write) -> None:
    assert load_job(write(GOOD), ["params.tolerance=null"]).params["tolerance"] is None


def test_only_given_keys_go_to_load(write: Write) -> None:
    options = load_job(write(GOOD)).graph.load_options
    assert options == {"format": "snap", "directed": True, "weights": 2}


def test_paths_of_the_file_start_at_its_folder(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(GOOD)
    monkeypatch.chdir("/")
    job = load_job(path)
    assert job.graph.path == str(path.parent / "web.txt.xz")
    assert job.output.path == str(path.parent / "ranks.parquet")
    assert job.folder == path.parent


def test_paths_of_the_command_line_start_here(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write(GOOD)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    job = load_job(path, ["graph.path=g.txt", "program=p.py:P"], output="it's.csv")
    assert job.graph.path == str(here / "g.txt")
    assert job.output.path == str(here / "it's.csv")
    assert job.folder == here


def test_several_paths_of_one_graph(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "program: sigps.apps:WCC\ngraph: {path: [a.sigps, /disk/b]}\n"
    path = write(text)
    monkeypatch.chdir("/")
    assert load_job(path).graph.paths == [str(path.parent / "a.sigps"), "/disk/b"]
    assert load_job(path, ["graph.path=[x, y]"]).graph.path == ["/x", "/y"]
    for wrong in ("3", "[]", "[1, 2]", "{a: b}"):
        with pytest.raises(ConfigError, match=r"graph\.path .*a path, or a list of paths"):
            load_job(write(f"program: sigps.apps:WCC\ngraph: {{path: {wrong}}}\n"))


def test_absolute_paths_stay(write: Write) -> None:
    assert load_job(write(GOOD), ["graph.path=/data/g.txt"]).graph.path == "/data/g.txt"


@pytest.mark.parametrize(
    ("assignment", "keys", "value"),
    [
        ("engine.device=cpu", ("engine", "device"), "cpu"),
        ("engine.max_supersteps=12", ("engine", "max_supersteps"), 12),
        ("engine.deterministic=true", ("engine", "deterministic"), True),
        ("params.source=1e3", ("params", "source"), 1000.0),
        ("params.name=a=b", ("params", "name"), "a=b"),
        ("engine.trace=[1, 2]", ("engine", "trace"), [1, 2]),
        ("output={top: 1}", ("output", "top"), 1),
        ("checkpoint=", ("checkpoint",), None),
    ],
)
def test_set(write: Write, assignment: str, keys: tuple[str, ...], value: Any) -> None:
    found: Any = load_job(write(GOOD), [assignment])
    for key in keys:
        found = found[key] if isinstance(found, dict) else getattr(found, key)
    assert found == value


def test_set_makes_the_sections_it_needs(write: Write) -> None:
    path = write("program: a:B\n")
    job = load_job(path, ["graph.generator.rmat.scale=5", "graph.generator.rmat.seed=2"])
    assert job.graph.generator == {"rmat": {"scale": 5, "seed": 2}}


def test_set_leaves_what_an_alias_shares(write: Write) -> None:
    path = write("program: a:B\ngraph: {generator: {rmat: &o {scale: 5}}}\nparams: *o\n")
    job = load_job(path, ["params.scale=9"])
    assert (job.params, job.graph.generator) == ({"scale": 9}, {"rmat": {"scale": 5}})


def test_all_mistakes_at_once_with_their_places(write: Write) -> None:
    text = refused(
        write(
            "program: 7\n"
            "graph: {path: g, formt: snap, pth: h, ids: strings}\n"
            "engine: {devise: cpu, max_supersteps: many, host_memory: lots}\n"
            "ouput: {}\n"
        ),
        "engine.direction=pul",
    )
    lines = text.splitlines()
    assert "9 problems" in lines[0]
    assert lines[1:] == [
        "  line 1: program is 7, but it must be text",
        "  line 2: graph.ids is 'strings'; did you mean 'string'? It must be one of int, string",
        "  line 2: graph.formt (value 'snap') is no known key; did you mean 'format'? graph has path, "
        "format, directed, weights, columns, source, target, duplicates, self_loops, delimiter, comment, "
        "header, ids, vertices, vertex_id, vertex_columns, verify, generator",
        "  line 2: graph.pth (value 'h') is no known key; did you mean 'path'?",
        "  line 3: engine.max_supersteps is 'many', but it must be a whole number",
        "  --set engine.direction=pul: engine.direction is 'pul'; did you mean 'pull'? "
        "It must be one of auto, push, pull",
        "  line 3: engine.host_memory is 'lots', but it must be bytes above 0: a whole number, or a text such "
        "as '8GB' or '512MiB'",
        "  line 3: engine.devise (value 'cpu') is no known key; did you mean 'device'? engine has device, "
        "max_supersteps, deterministic, schedule, direction, precision, asynchronous, threads, trace, seed, "
        "host_memory, device_memory, stream, transfer, tiles",
        "  line 4: ouput (value {}) is no known key; did you mean 'output'? a job has program, params, many, "
        "graph, engine, partition, exchange, checkpoint, faults, updates, output",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "this file holds nothing"),
        ("- a\n- b", "this file holds a list"),
        ("program", "this file holds a single value"),
        ("program: [", "line 1: "),
        ("program: a:B\n\tgraph: x", "line 2: "),
        ("program: !!python/object/apply:os.system ['true']", "not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("when: 2020-13-45", "not valid YAML"),
        ("{a: 1}: 2", "a key must be a name, not a mapping"),
        ("program: a:B\nprogram: c:D", "line 2, program: written twice; the first is in line 1"),
        ("engine:\n  device: cpu\n  device: cuda", "line 3, engine.device: written twice"),
        ("program: a:B", "graph is missing"),
        ("graph: {path: x}", "program is missing"),
        ("program: a:B\ngraph: {}", "neither 'path' nor 'generator'"),
        ("program: a:B\ngraph: {path: x, generator: {rmat: {}}}", "both 'path' and 'generator'"),
        ("program: a:B\ngraph: {generator: {rmat: {}, grid: {}}}", "names rmat, grid: give exactly one"),
        ("program: a:B\ngraph: {generator: {}}", "names none: give exactly one"),
        ("program: a:B\ngraph: {generator: rmat}", "graph.generator is 'rmat', but it must be a mapping"),
        ("program: a:B\ngraph: {directed: true, generator: {rmat: {}}}", "graph.directed belongs to 'path'"),
        ("program: a:B\ngraph: web.txt", "graph is 'web.txt', but it must be a mapping"),
        ("program: a:B\ngraph: {path: x, weights: [1]}", "graph.weights is [1], but it must be true, false"),
        ("program: a:B\ngraph: {path: x, directed: 1}", "graph.directed is 1, but it must be true or false"),
        ("program: a:B\ngraph: {path: x}\nparams: 3", "params is 3, but it must be a mapping"),
        (
            "program: a:B\ngraph: {path: x}\nengine: {threads: 0}",
            "engine.threads is 0, but it must be at least 1",
        ),
        (
            "program: a:B\ngraph: {path: x}\nengine: {threads: 1.5}",
            "engine.threads is 1.5, but it must be a whole",
        ),
        (
            "program: a:B\ngraph: {path: x}\nengine: {asynchronous: maybe}",
            "engine.asynchronous is 'maybe', but it must be true, false or auto",
        ),
        (
            "program: a:B\ngraph: {path: x}\nengine: {schedule: edges}",
            "engine.schedule is 'edges'; did you mean 'edge'? It must be one of vertex, edge",
        ),
        (
            "program: a:B\ngraph: {path: x}\nengine:\n  schedule: edge\n  direction: push",
            "line 5: engine.direction is of schedule 'vertex'; edges have none",
        ),
        ("program: a:B\ngraph: {path: x}\nengine: {trace: [1, {}]}", "engine.trace.1 is {}"),
        ("program: a:B\ngraph: {path: x}\nengine: {trace: [true]}", "engine.trace.0 is True"),
        (
            "program: a:B\ngraph: {path: x}\noutput: {fields: rank}",
            "output.fields is 'rank', but it must be a list",
        ),
        ("program: a:B\ngraph: {path: x}\noutput: {top: -1}", "output.top is -1, but it must be at least 0"),
        ("program: a:B\ngraph: {path: x}\ncheckpoint: {every: 1}", "checkpoint.dir is missing"),
        ("program: a:B\ngraph: {path: x}\ncheckpoint: {dir: d}", "checkpoint says not when"),
        (
            "program: a:B\ngraph: {path: x}\ncheckpoint: {dir: d, seconds: 0}",
            "checkpoint.seconds is 0, but it must be above 0",
        ),
        ("program: a:B\ngraph: {path: x}\n1: 2", "must be"),
    ],
)
def test_refused(write: Write, text: str, complaint: str) -> None:
    assert complaint in refused(write(text))


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("engine.device", "write --set KEY=VALUE"),
        ("=3", "write --set KEY=VALUE"),
        ("engine..device=cpu", "write --set KEY=VALUE"),
        ("program.x=3", "program is 'sigps.apps:PageRank', which has no keys to set"),
        ("engine.device=[", "not a YAML value"),
        ("engine.devize=cpu", "--set engine.devize=cpu: engine.devize (value 'cpu') is no known key"),
    ],
)
def test_set_refused(write: Write, assignment: str, complaint: str) -> None:
    assert complaint in refused(write(GOOD), assignment)


def test_unreadable_files(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "absent.yaml")
    assert "Is a directory" in refused(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    assert "not UTF-8" in refused(binary)


def test_deep_nesting_is_an_error_and_no_crash(write: Write) -> None:
    assert "nested too deeply" in refused(write("a: " + "[" * 5000))


def test_columns_with_types_become_tuples(write: Write) -> None:
    job = load_job(write(GOOD), ["graph.columns={time: [2, int64], kind: 3}", "graph.weights=[4, float32]"])
    assert job.graph.load_options["columns"] == {"time": (2, "int64"), "kind": 3}
    assert job.graph.load_options["weights"] == (4, "float32")


def test_load_options_of_the_command_line() -> None:
    assert load_options(["weights=2", "delimiter=;"]) == {"weights": 2, "delimiter": ";"}
    assert load_options([]) == {}
    with pytest.raises(ConfigError, match=r"--opt formatt=snap: graph.formatt .* did you mean 'format'"):
        load_options(["formatt=snap"])


def test_a_job_is_immutable(write: Write) -> None:
    job: JobConfig = load_job(write(GOOD))
    with pytest.raises(ValueError, match="frozen"):
        job.program = "other:Class"
