"""`sigps log`: what it lists, verifies and shows of a vertex, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sigps import Checkpoint, Graph, run
from sigps.apps import SSSP
from sigps.cli import main as cli
from sigps.system.checkpoint.files import find_logs

Command = Callable[..., tuple[int, str, str]]

EDGES = ([10, 20, 10, 30], [20, 30, 30, 40], [1.5, 2.0, 9.0, 1.0])


@pytest.fixture
def sigps(capsys: pytest.CaptureFixture[str]) -> Command:
    def command(*arguments: object) -> tuple[int, str, str]:
        code = cli.execute([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    checkpoint = Checkpoint(folder, every=1, keep=3)
    run(SSSP(source=10), Graph.from_edges(*EDGES), device="python", checkpoint=checkpoint)
    return folder


def supersteps(table: str) -> list[str]:
    return [line.split()[1] for line in table.splitlines()[1:] if "Z-" in line.split()[0]]


def test_the_list(sigps: Command, logs: Path) -> None:
    code, out, err = sigps("log", logs)
    assert (code, err) == (0, "")
    head, *rows = [line.split() for line in out.splitlines()]
    assert head == ["run", "superstep", "program", "ranks", "device", "size", "saved"]
    assert [row[1:5] for row in rows] == [[str(n), "SSSP", "1", "python"] for n in (1, 2, 3)]
    assert [row[0] for row in rows] == [path.name[:21] for path in sorted(find_logs(logs))]
    assert [row[6] for row in rows] == ["KiB"] * 3 or [row[6] for row in rows] == ["B"] * 3


def test_a_damaged_manifest_is_listed_and_an_unfinished_log_mentioned(sigps: Command, logs: Path) -> None:
    second = sorted(find_logs(logs))[1]
    (second / "manifest.msgpack").write_bytes(b"not a manifest")
    (logs / "20990101T000000Z-0000-00000040").mkdir()
    code, out, _ = sigps("log", logs)
    assert code == 0
    lines = out.splitlines()
    assert lines[2].split() == [second.name[:21], "2", "damaged", *"----"]
    assert lines[4] == f"{second}/manifest.msgpack is damaged: it begins with b'not a manifest'"
    assert lines[5] == "begun and not finished, so never gone on from: 20990101T000000Z-0000-00000040"
    assert sigps("log", logs, "--verify")[0] == 1


def test_verify(sigps: Command, logs: Path) -> None:
    code, out, _ = sigps("log", logs, "--verify")
    assert (code, [line.split()[-1] for line in out.splitlines()]) == (0, ["parts", *["whole"] * 3])
    part = find_logs(logs)[0] / "part-00000.npz"
    raw = bytearray(part.read_bytes())
    raw[len(raw) // 3] ^= 1
    part.write_bytes(raw)
    code, out, _ = sigps("log", logs, "--verify")
    assert code == 1
    lines = out.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["whole", "whole", "damaged"]
    assert lines[4].startswith(str(part))


def test_a_vertex_in_every_log(sigps: Command, logs: Path) -> None:
    code, out, _ = sigps("log", logs, "--vertex", 40, "--vertex", 10)
    assert code == 0
    run_name = find_logs(logs)[0].name[:21]
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["vertex", "40,", "SSSP,", "run", run_name]
    assert lines[1] == ["superstep", "status", "distance", "parent"]
    assert [row[0] for row in lines[2:5]] == ["1", "2", "3"]
    assert [row[2] for row in lines[2:5]] == ["inf", "inf", "10.0"]  # 10 by the edge of 9, then 4.5
    assert lines[5][:2] == ["vertex", "10,"]
    assert [row[2] for row in lines[7:]] == ["0.0"] * 3


def test_a_vertex_where_a_log_is_damaged(sigps: Command, logs: Path) -> None:
    (find_logs(logs)[0] / "manifest.msgpack").write_bytes(b"x")
    code, out, _ = sigps("log", logs, "--vertex", 10)
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["1", "2"]
    assert "is damaged: it begins with b'x'" in out.splitlines()[4]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["absent"], 1, "absent: there is no such folder; name the checkpoint.dir of a job"),
        (["."], 1, "no finished state log lies here"),
        (["log", "--vertex", "11"], 1, "no log has vertex '11': the 4 ids there are whole numbers"),
        (["log", "--vertex", "ann"], 1, "no log has vertex 'ann'"),
        (["log", "--verify", "--vertex", "10"], 2, "give one of them"),
    ],
)
def test_refused_in_plain_words(
    sigps: Command,
    logs: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(logs.parent)
    ended, _, err = sigps("log", *arguments)
    assert ended == code
    assert err.startswith("error: ")
    assert complaint in err
