"""The command line: what each command prints, what it refuses, and how it ends."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import pyarrow.parquet
import pytest
from places import REPOSITORY

from sigps.cli import main as cli
from sigps.device.cuda import what_is_missing

MPIRUN = Path(sys.executable).with_name("mpirun")
CONFIGS = REPOSITORY / "configs"

JOB = """
program: sigps.apps:SSSP
params: {source: 10}
graph: {path: graph.txt, weights: 2}
engine: {device: python}
output: {top: 2}
"""
EDGES = "10 20 1.5\n20 30 2\n10 30 9\n30 40 1\n"
DISTANCES = {"10": 0.0, "20": 1.5, "30": 3.5, "40": 4.5}  # by hand

PROGRAM = """
from sigps import Param, State, Vertex

class Wait(Vertex, message=int):
    rounds: Param[int] = 3
    seen: State[int] = 0
    def compute(self, messages):
        self.seen += len(messages)
        if self.superstep < self.rounds:
            self.send_to_neighbors(1)
        self.vote_to_halt()
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> Ended:
        code = cli.execute([str(argument) for argument in arguments])
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text(EDGES)
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def distances(path: Path) -> dict[str, float]:
    parts = sorted(path.glob("part-*")) if path.is_dir() else [path]
    rows = [row for part in parts for row in csv.DictReader(part.read_text().splitlines())]
    return {row["id"]: float(row["distance"]) for row in rows}


def test_a_job_prints_the_whole_account(run: Run, job: Path) -> None:
    ended = run("run", job)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].endswith("(snap): directed, 4 vertices, 4 edges given, 4 stored")
    table = next(n for n, line in enumerate(lines) if line.startswith("superstep"))
    assert [line.split()[0] for line in lines[table + 1 : table + 5]] == list("0123")
    assert lines[table + 5].startswith("converged: ")
    assert "after 4 supersteps" in lines[table + 5]
    assert [line.split() for line in lines[-5:-1]] == [
        ["highest", "distance"],
        ["id", "distance"],
        ["40", "4.5"],
        ["30", "3.5"],
    ]
    assert lines[-1].startswith("took ")


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        ("SSSP", (), ", in double precision"),
        ("SSSP", ("--set", "engine.precision=single"), ", in single precision"),
        ("SSSP", ("--set", "engine.device=python"), ""),
        ("BFS", (), ""),
    ],
)
def test_a_job_says_in_which_precision_floats_were_computed(
    program: str, options: tuple[str, ...], said: str, run: Run, job: Path
) -> None:
    job.write_text(
        f"program: sigps.apps:{program}\nparams: {{source: 10}}\n"
        "graph: {path: graph.txt, weights: 2}\noutput: {top: 0}\n"
    )
    ended = run("run", job, *options)
    assert ended.code == 0, ended.err
    (line,) = (line for line in ended.out.splitlines() if line.startswith("converged: "))
    assert re.sub(".*on device (python|cpu)", "", line) == said


def test_a_job_says_where_its_time_went(job: Path) -> None:
    started = time.monotonic()
    command = [sys.executable, "-m", "sigps", "run", str(job)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.monotonic() - started
    whole, lines = re.fullmatch(r"took (.*): (.*)", ended.stdout.splitlines()[-1]).groups()  # type: ignore[union-attr]
    spent = {name: float(value) for name, value in map(str.split, lines.split(", "))}
    number, unit = whole.split()
    took = float(number) * {"s": 1, "ms": 1e-3}[unit]
    assert abs(sum(spent.values()) - took) < 0.02
    assert took < seconds
    assert {"import", "load", "rest"} <= spent.keys()


def test_a_field_of_vectors_is_passed_over_where_fields_are_ranked(run: Run, job: Path) -> None:
    Path("pairs.py").write_text(
        "from sigps import State, Vector, Vertex, VertexId\n"
        "class Pairs(Vertex):\n"
        "    pair: State[Vector[int, 2]] = 3\n"
        "    own: State[VertexId] = -1\n"
        "    def compute(self, messages):\n"
        "        self.own = self.id\n"
        "        self.vote_to_halt()\n"
    )
    pairs = ["--set", "program=pairs.py:Pairs", "--set", "params={}"]
    ended = run("run", job, *pairs)
    assert (ended.code, ended.err) == (0, "")
    assert [line.split() for line in ended.out.splitlines()[-5:-1]] == [
        ["highest", "own"],
        ["id", "own"],
        ["40", "40"],
        ["30", "30"],
    ]
    ended = run("run", job, *pairs, "--set", "output={fields: [pair], path: pairs.csv}")
    assert (ended.code, ended.err) == (0, "")
    assert "highest pair" not in ended.out


def test_output_as_csv_and_parquet(run: Run, job: Path, tmp_path: Path) -> None:
    assert f"\nwrote {tmp_path}/result.csv\n" in run("run", job, "-o", "result.csv").out
    assert distances(tmp_path / "result.csv") == DISTANCES
    run("run", job, "--set", "output={path: r.parquet, fields: [parent]}")
    assert pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pydict() == {
        "id": [10, 20, 30, 40],
        "parent": [10, 10, 20, 30],
    }


def test_max_supersteps_is_named_as_the_reason(run: Run, job: Path) -> None:
    assert (
        "stopped at max_supersteps, after 2 supersteps"
        in run("run", job, "--set", "engine.max_supersteps=2").out
    )


def test_trace_is_printed(run: Run, job: Path) -> None:
    out = run("run", job, "--set", "engine.trace=[40]").out
    assert "superstep 3, vertex 40: reads" in out
    assert "distance 10.0 -> 4.5" in out


def test_dry_run_reads_and_writes_nothing(run: Run, job: Path, tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("10 20 not-a-weight\n")
    ended = run("run", job, "--dry-run", "-o", "r.csv", "--set", "engine.device=cpu")
    assert ended.code == 0
    assert "device: cpu" in ended.out
    assert "nothing was run" in ended.out
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--resume"], 2, "has no section 'checkpoint' that says where its logs are"),
        (["--set", "checkpoint={dir: d}"], 2, "checkpoint says not when"),
        (["--set", "checkpoint={dir: graph.txt, every: 1}"], 2, "graph.txt: Not a directory"),
        (["--set", "engine.devise=cpu"], 2, "did you mean 'device'?"),
        (["--set", "program=sigps.apps:SSP"], 2, "did you mean 'SSSP'?"),
        (["--set", "program=absent.py:SSSP"], 2, "there is no file"),
        (["--set", "params.sourse=10"], 2, "has no parameter 'sourse'; did you mean 'source'?"),
        (["--set", "params={}"], 2, "SSSP needs source="),
        (["--set", "params.source=99"], 1, "99"),
        (
            ["--set", "output.fields=[distanc]"],
            2,
            "output.fields names distanc, but SSSP has the fields distance, parent",
        ),
        (["-o", "result.txt"], 2, "a result is written as .parquet or .csv"),
        (["-o", "absent/result.csv"], 2, "there is no folder"),
        (["--set", "graph.path=absent.txt"], 1, "absent.txt"),
        (["--set", "graph.format=snapp"], 2, "snapp"),
        (["--set", "graph={generator: {rmatt: {}}}"], 2, "did you mean 'rmat'?"),
        (["--set", "graph={generator: {rmat: {scale: 3, sed: 1}}}"], 2, "did you mean 'seed'?"),
        (["--set", "engine={device: cpu, trace: [10]}"], 2, "engine.trace needs engine.device: python"),
    ],
)
def test_refused_in_plain_words(run: Run, job: Path, arguments: list[str], code: int, complaint: str) -> None:
    ended = run("run", job, *arguments)
    assert ended.code == code
    assert ended.err.startswith("error: ")
    assert complaint in ended.err
    assert "Traceback" not in ended.err


def test_a_device_that_cannot_run_is_refused_in_plain_words(run: Run, job: Path) -> None:
    if not what_is_missing():
        pytest.skip("a GPU is here")
    ended = run("run", job, "--set", "engine.device=cuda")
    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert "device='cuda' cannot be used: " in ended.err
    assert "Traceback" not in ended.err


def test_what_is_wrong_in_several_places_is_said_at_once(run: Run, job: Path) -> None:
    ended = run("run", job, "--set", "params.sourse=1", "--set", "graph.path=absent.txt", "-o", "r.txt")
    assert ended.code == 2
    assert "3 problems" in ended.err
    for complaint in ("'sourse'", "absent.txt", ".parquet or .csv"):
        assert complaint in ended.err


def test_parameters_out_of_range_are_refused_before_the_graph_is_read(run: Run, job: Path) -> None:
    job.write_text(
        JOB.replace("SSSP", "PageRank").replace("{source: 10}", "\n  damping: 1.5\n  iterations: -1")
    )
    (job.parent / "graph.txt").write_text("not a graph")
    for command in ("run", "plan"):
        ended = run(command, job, "--set", "params.dangling=x", "--set", "params.dampin=1")
        assert ended.code == 2
        assert ended.err.splitlines() == [
            f"error: {job}: parameters are wrong",
            "  --set params.dampin=1: PageRank has no parameter 'dampin'; did you mean 'damping'? "
            "It has: damping, iterations, tolerance, dangling",
            "  line 4: PageRank: damping=1.5 is not from 0 to 1",
            "  line 5: PageRank: iterations=-1 is not at least 0",
            "  --set params.dangling=x: PageRank: dangling='x' is none of 'redistribute', 'leak'",
        ]
    both = run(
        "run", job, "--set", "program=sigps.apps:HarmonicLabels", "--set", "params={one: 10, zero: 10}"
    )
    assert (both.code, both.err) == (
        2,
        "error: HarmonicLabels: one and zero are different vertices, not one=10, zero=10\n",
    )
    explained = run("explain", "sigps.apps:PageRank", "--param", "damping=-1")
    assert (explained.code, explained.err) == (2, "error: PageRank: damping=-1 is not from 0 to 1\n")


def test_a_program_that_cannot_be_compiled_is_refused_before_the_graph_is_read(run: Run, job: Path) -> None:
    bad = PROGRAM.replace("self.seen += len(messages)", "self.seen = len(sorted(str(m) for m in messages))")
    (job.parent / "bad.py").write_text(bad)
    (job.parent / "graph.txt").write_text("not a graph")
    ended = run(
        "run", job, "--set", "program=bad.py:Wait", "--set", "params={}", "--set", "engine.device=cpu"
    )
    assert ended.code == 1
    assert "bad.py:8: " in ended.err
    assert "sorted" in ended.err


def test_a_program_from_a_file(run: Run, job: Path) -> None:
    (job.parent / "wait.py").write_text(PROGRAM)
    settings = ["--set", "program=wait.py:Wait", "--set", "params={rounds: 2}", "--set", "graph.weights=null"]
    out = run("run", job, *settings).out
    assert [line.split() for line in out.splitlines()[-3:-1]] == [
        ["30", "3"],
        ["40", "2"],
    ]  # 10 receives nothing, so halts


def test_an_error_in_a_program_shows_its_traceback(run: Run, job: Path) -> None:
    (job.parent / "wait.py").write_text(PROGRAM.replace("self.seen +=", "[][1]; self.seen +="))
    ended = run("run", job, "--set", "program=wait.py:Wait", "--set", "params={}")
    assert ended.code == 1
    assert "IndexError" in ended.err


def test_usage_errors(run: Run) -> None:
    for arguments in (
        ["run"],
        ["runn", "job.yaml"],
        ["run", "job.yaml", "--nope"],
        ["partition", "g", "-n", "0"],
    ):
        ended = run(*arguments)
        assert ended.code == 2
        assert "Usage: sigps" in ended.err
        assert "error: " in ended.err


def test_interrupt_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.sigps.commands, "doctor", click.Command("doctor", callback=interrupt))
    ended = run("doctor")
    assert (ended.code, ended.err.strip()) == (130, "interrupted")


def test_any_other_error_is_a_bug_with_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    monkeypatch.setitem(cli.sigps.commands, "doctor", click.Command("doctor", callback=fail))
    ended = run("doctor")
    assert ended.code == 1
    assert ended.err.startswith("Traceback")
    assert ended.err.endswith("RuntimeError: broken\n")


def test_doctor(run: Run) -> None:
    ended = run("doctor")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == [
        "sigps", "python", "packages", "files", "cpu", "mpi", "gpu", "cache", "device", "transport", "hosts", "watch",
    ]  # fmt: skip


def test_doctor_fills_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    environment = {**os.environ, "SIGPS_CACHE_DIR": str(folder)}
    warming = (
        "from sigps import State, Vertex, from_column; from sigps.apps import OutDegree\n"
        "from sigps.cli import main, warm; from sigps.engine import table\n"
        "class Old(Vertex):\n"
        "    age: State[float] = from_column('age')\n"
        "    def compute(self, messages):\n"
        "        self.vote_to_halt()\n"
        "table.ENGINES = [table.engine_of('cpu')]\n"
        "warm._programs = lambda graph: {'OutDegree': OutDegree(), 'Old': Old()}\n"
        "main.execute(['doctor', '--warm'])\n"
    )
    (tmp_path / "warming.py").write_text(warming)
    command = [sys.executable, str(tmp_path / "warming.py")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    first, second = ended.stdout.splitlines()
    assert first == f"cpu: 1 programs of sigps.apps are in {folder}"
    assert second.startswith("  not Old: ")
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) > 1
    running = (
        "import sigps; from sigps.apps import OutDegree; "
        "sigps.run(OutDegree(), sigps.Graph.from_edges([0, 1], [1, 2]), device='cpu')"
    )
    subprocess.run([sys.executable, "-c", running], check=True, env=environment)
    assert {path.name for path in folder.iterdir()} == kept


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from sigps.cli import main; main.execute(['--help']); "
        "heavy = {'numba', 'pydantic', 'rich', 'pyarrow', 'pandas', 'scipy', 'mpi4py', 'yaml'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "explain" in ended.stdout


def test_explain(run: Run) -> None:
    ended = run("explain", "sigps.apps:SSSP")
    assert ended.code == 0
    assert "min" in ended.out
    assert run("explain", "sigps.apps:SSP").code == 2


def test_explain_on_a_graph(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a path of three vertices: two edges both ways, in one segment of all vertices."""
    monkeypatch.chdir(tmp_path)
    Path("path.csv").write_text("1,2\n2,3\n")
    how = ["--graph", "path.csv", "--opt", "directed=false"]
    ended = run("explain", "sigps.apps:PageRank", *how, "--precision", "single")
    assert ended.code == 0
    assert ended.out.splitlines()[-2:] == [
        "on path.csv: 3 vertices, 4 stored edges",
        "  tiles        no: 3 pairs of a vertex and a segment for 4 edges, of which 0 come from others than the first "
        "45,000, in segments of 47,104; it has fewer than 8,000,000 edges",
    ]
    assert "\n  tiles        no: a pull ends where" in run("explain", "sigps.apps:BFS", *how).out
    assert "name one with --graph" in run("explain", "sigps.apps:BFS", "--opt", "directed=false").err


def test_generate_info_convert_partition(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("generate", "grid", "--opt", "rows=3", "--opt", "columns=4", "-o", "g.sigps")
    assert ended.code == 0
    assert ended.out.endswith("wrote g.sigps\n")
    for path in ("g.sigps", "g.mtx", "g.graph", "g.csv", "g.txt.gz"):
        if path != "g.sigps":
            assert run("convert", "g.sigps", path).code == 0
        options = ["--opt", "directed=false"] if path in ("g.csv", "g.txt.gz") else []
        out = run("info", path, *options).out
        assert "undirected" in out
        assert path.endswith((".sigps", ".gz")) or f"load report    {path} (" in out
        assert "vertices       12\n" in out  # a 3 x 4 grid has 3 * 3 + 2 * 4 edges
        assert "stored edges   34\n" in out
    assert "every checksum is right" in run("info", "g.sigps", "--verify").out
    assert (
        run("generate", "grid", "--opt", "rows=3", "--opt", "columns=4", "--packed", "-o", "p.sigps").code
        == 0
    )
    assert run("convert", "g.csv", "q.sigps", "--packed", "--opt", "directed=false").code == 0
    for path in ("p.sigps", "q.sigps"):
        out = run("info", path, "--verify").out
        assert "stored edges   34\n" in out
        assert "on disk        1 packed pages of rows in the order of ids" in out
        assert out.endswith("every checksum is right\n")
    assert "on disk        raw arrays" in run("info", "g.sigps").out
    assert run("convert", "p.sigps", "r.csv").code == 0
    assert Path("r.csv").read_text() == Path("g.csv").read_text()
    for path in ("g.sigps", "p.sigps"):
        out = run("partition", path, "-n", "3", "--method", "vertices").out
        assert [line.split()[:2] for line in out.splitlines()[1:4]] == [["0", "4"], ["1", "4"], ["2", "4"]]


def test_a_store_in_several_folders(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("disk").mkdir()
    more = ["--packed", "--folder", "disk/b", "--folder", "disk/c"]
    made = run("generate", "grid", "--opt", "rows=3", "--opt", "columns=4", "-o", "a.sigps", *more)
    assert (made.code, made.out.splitlines()[-1]) == (0, "wrote a.sigps, disk/b, disk/c")
    folders = ["disk/c", "a.sigps", "disk/b"]
    out = run("info", *folders, "--verify").out
    assert "on disk        1 packed pages of rows in the order of ids" in out
    where = [line.split(", ")[0] for line in out.splitlines() if "of the pages" in line]
    assert where == [
        "  a.sigps: 1 of the pages",
        "  disk/b: 0 of the pages",
        "  disk/c: 0 of the pages",
    ]
    assert out.endswith("every checksum is right\n")
    assert run("convert", *folders, "out.csv").code == 0
    assert Path("out.csv").read_text().count("\n") == 18  # 3 * 3 + 2 * 4 edges, and a line of names
    assert "ghosts" in run("partition", *folders, "-n", "2").out
    missing = run("info", "a.sigps", "disk/b")
    assert (missing.code, "folder 3 is missing" in missing.err) == (1, True)
    Path("job.yaml").write_text(
        "program: sigps.apps:WCC\ngraph: {path: [a.sigps, disk/b, disk/c]}\n"
        "engine: {device: cpu, stream: always}\noutput: {path: out.csv}\n"
    )
    assert run("run", "job.yaml").code == 0
    assert {line.split(",")[1] for line in Path("out.csv").read_text().splitlines()[1:]} == {"0"}
    assert "12 vertices" in run("plan", "job.yaml").out
    assert (
        "12 vertices" in run("explain", "sigps.apps:WCC", *(w for f in folders for w in ("--graph", f))).out
    )
    lost = run("run", "job.yaml", "--set", "graph.path=[a.sigps, disk/b, disk/d]")
    assert (lost.code, "there is no folder" in lost.err, "disk/d" in lost.err) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["generate", "grd", "-o", "g.sigps"], 2, "did you mean 'grid'?"),
        (["generate", "grid", "--opt", "rows=3", "-o", "g.sigps"], 2, "needs columns"),
        (["generate", "grid", "--opt", "rows", "-o", "g.sigps"], 2, "write --opt KEY=VALUE"),
        (["generate", "grid", "-o", "g.sigp"], 2, "did you mean '.sigps'?"),
        (["generate", "grid", "-o", "absent/g.sigps"], 2, "there is no folder"),
        (["convert", "absent.txt", "g.mtx"], 1, "absent.txt"),
        (["convert", "graph.txt", "g.mtx", "--opt", "formt=snap"], 2, "did you mean 'format'?"),
        (["convert", "graph.txt", "g.mtx", "--packed"], 2, "only a .sigps folder has packed edges"),
        (["convert", "graph.txt", "g.sigps", "--folder", "h"], 2, "give --packed, too"),
        (["convert", "graph.txt", "g.sigps", "--packed", "--folder", "absent/h"], 2, "there is no folder"),
        (["convert", "graph.txt", "g.sigps", "--packed", "--folder", "g.sigps"], 1, "beside each other"),
        (["info", "absent.sigps"], 1, "absent.sigps"),
        (["info", "graph.txt", "--verify"], 2, "is no native store"),
        (["partition", "absent.sigps", "-n", "2"], 1, "absent.sigps"),
        (["convert", "graph.txt", "g.mtx", "--opt", "ids=strin"], 2, "did you mean 'string'?"),
    ],
)
def test_graph_commands_refuse(run: Run, job: Path, arguments: list[str], code: int, complaint: str) -> None:
    ended = run(*arguments)
    assert ended.code == code
    assert ended.err.startswith("error: ")
    assert complaint in ended.err
    assert sorted(p.name for p in job.parent.iterdir()) == ["graph.txt", "job.yaml"]


def test_an_option_of_the_graph_given_as_one_of_the_command(run: Run, job: Path) -> None:
    assert "An option of the graph is --opt ids=VALUE" in run("info", "graph.txt", "--ids", "string").err
    assert "--opt" not in run("info", "graph.txt", "--verfy").err  # that one is near another


def test_the_command_alone_is_its_help(run: Run) -> None:
    assert run() == run("--help")
    assert run().code == 0


TINY = {
    "bfs": "grid: {rows: 4, columns: 4}",
    "sssp": "grid: {rows: 4, columns: 4, weights: random}",
    "wcc": "erdos_renyi: {n: 40, m: 30}",
    "longest_path": "erdos_renyi: {n: 40, m: 30, directed: true}",
    "bipartite_matching": "erdos_renyi: {n: 40, m: 30, directed: true}",
    "out_degree": "rmat: {scale: 5, directed: true}",
    "shortest_paths": "grid: {rows: 16, columns: 16}",
    "maximum_flow": "grid: {rows: 16, columns: 16}",
    "katz": "grid: {rows: 4, columns: 4}",
    "betweenness": "grid: {rows: 4, columns: 4}",
    "closeness": "erdos_renyi: {n: 40, m: 30}",
    "eccentricities": "erdos_renyi: {n: 40, m: 30}",
    "harmonic": "erdos_renyi: {n: 40, m: 30}",
    "hits": "rmat: {scale: 5, directed: true}",
    "maximal_independent_set": "erdos_renyi: {n: 40, m: 30}",
    "maximal_matching": "erdos_renyi: {n: 40, m: 30}",
    "greedy_colouring": "erdos_renyi: {n: 40, m: 30}",
    "khop": "grid: {rows: 4, columns: 4}",
    "heat_diffusion": "grid: {rows: 4, columns: 4}",
    "harmonic_labels": "grid: {rows: 4, columns: 4, weights: random}",
    "weighted_labels": "grid: {rows: 4, columns: 4, weights: random}",
    "neural_network": "grid: {rows: 4, columns: 4}",
    "ego_net": "grid: {rows: 6, columns: 6}",
    "label_groups": "erdos_renyi: {n: 40, m: 30}",
    "label_propagation": "erdos_renyi: {n: 40, m: 30}",
    "scc": "erdos_renyi: {n: 40, m: 60, directed: true}",
    "minimum_spanning_forest": "grid: {rows: 4, columns: 4, weights: random}",
    "streamdn": "grid: {rows: 3, columns: 3}",
    "semi_clustering": "grid: {rows: 4, columns: 4}",
    "effective_diameter": "grid: {rows: 4, columns: 4}",
    "hyperball": "grid: {rows: 4, columns: 4}",
    "tridn": "rmat: {scale: 4}",
    "als": "rmat: {scale: 3, directed: true, weights: random}",
    "louvain": "grid: {rows: 4, columns: 4}",
    "leiden": "grid: {rows: 4, columns: 4}",
}
"""Generators for the jobs that mean little on a tiny Kronecker graph, which the others run on."""

WITHOUT_NUMBERS = {
    "degree_histogram",
    "fastrp",
    "most_similar",
    "motifs",
    "node2vec_walks",
    "semi_clustering",
}
"""Jobs of programs that have no fields, or fields of vectors only."""


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("*.yaml")))
def test_configs_run_on_a_tiny_graph(run: Run, name: str) -> None:
    path = CONFIGS / f"{name}.yaml"
    assert run("run", path, "--dry-run").code == 0
    tiny = f"graph={{generator: {{{TINY.get(name, 'rmat: {scale: 5}')}}}}}"
    ended = run("run", path, "--set", tiny, "--set", "engine.device=python")
    assert (ended.code, ended.err) == (0, "")
    assert ("stopped by the program" if name == "streamdn" else "converged") in ended.out
    assert ("highest" in ended.out) == (name not in WITHOUT_NUMBERS)


def mpirun(ranks: int, *arguments: object) -> Ended:
    if not MPIRUN.exists():
        pytest.skip("no mpirun beside this Python: pip install 'sigps[mpi]'")
    command = [MPIRUN, "-n", ranks, MPIRUN.with_name("sigps"), *arguments]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.mpi
def test_three_ranks_write_three_parts_and_rank_0_prints(job: Path, tmp_path: Path) -> None:
    ended = mpirun(3, "run", job, "-o", "result.csv")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("converged: ") == 1
    assert "3 ranks" in ended.out
    assert [line.split() for line in ended.out.splitlines()[-4:-2]] == [["40", "4.5"], ["30", "3.5"]]
    names = [f"part-0000{r}.csv" for r in range(3)]
    assert sorted(p.name for p in (tmp_path / "result.csv").iterdir()) == ["_SUCCESS", *names]
    assert distances(tmp_path / "result.csv") == DISTANCES


@pytest.mark.mpi
def test_a_mistake_is_reported_once_by_all_ranks(job: Path) -> None:
    for settings, code in (("engine.devise=cpu", 2), ("params.source=99", 1)):
        ended = mpirun(3, "run", job, "--set", settings)
        assert ended.code == code
        assert ended.err.count("error: ") == 1


@pytest.mark.mpi
def test_one_rank_that_fails_ends_all(job: Path) -> None:
    (job.parent / "wait.py").write_text(PROGRAM.replace("self.seen +=", "1 // (self.id - 20); self.seen +="))
    ended = mpirun(3, "run", job, "--set", "program=wait.py:Wait", "--set", "params={}")
    assert ended.code != 0
    assert "by zero" in ended.err
    assert "superstep 0" in ended.err


def test_a_job_writes_what_is_kept_on_edges(job: Path, tmp_path: Path, run: Run) -> None:
    """Two triangles on one edge, and a tail: the bounds are by hand."""
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n1 3\n2 4\n3 4\n4 5\n")
    job.write_text(
        "program: sigps.apps:BiTriDN\ngraph: {path: graph.txt, directed: false}\noutput: {edges: bounds.csv}\n"
    )
    ended = run("run", job)
    assert (ended.code, ended.err) == (0, "")
    assert f"wrote {tmp_path / 'bounds.csv'}" in ended.out.replace("\n", "")
    rows = (tmp_path / "bounds.csv").read_text().splitlines()
    assert rows == ["source,target,bound", "1,2,1", "1,3,1", "2,3,1", "2,4,1", "3,4,1", "4,5,0"]
    same = run("run", job, "--set", "output.path=bounds.csv", "--set", "output.edges=bounds.csv")
    assert same.code != 0
    assert "give each a file of its own" in same.err


def test_a_job_that_keeps_nothing_on_edges_cannot_write_it(job: Path, run: Run) -> None:
    ended = run("run", job, "--set", "output.edges=bounds.csv")
    assert ended.code != 0
    assert "SSSP keeps nothing on edges" in ended.err
