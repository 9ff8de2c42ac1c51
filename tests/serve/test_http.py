"""A server over HTTP: the questions of the socket, who may ask, and what garbage does."""

from __future__ import annotations

import base64
import io
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import sigps
from sigps import ConfigError
from sigps.serve.pool_file import read_pool_file
from sigps.serve.server import Server

pytest.importorskip("starlette", reason="Starlette is not installed: pip install 'sigps[http]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'sigps[http]'")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

TOKEN = "a token of the tests".replace(" ", "-")
POOL = """
socket: s
devices: cpu
graphs:
  rmat: {generator: {rmat: {scale: 6, seed: 1, weights: random}}}
programs: ["sigps.apps:*"]
tenants:
  ada: {jobs: 1}
  lab: {own_code: true}
http: {port: 0, token: token}
"""
GRAPH = sigps.generate("rmat", scale=6, seed=1, weights="random")
LONG = {"program": "sigps.apps:PageRank", "params": {"iterations": 10**7, "tolerance": 0.0}, "graph": "rmat"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("http")
    (folder / "pool.yaml").write_text(POOL)
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    with Server(read_pool_file(folder / "pool.yaml", None)) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        server.stop()
        thread.join(60)


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    assert server.http is not None
    with httpx.Client(
        base_url=server.http.address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=240
    ) as client:
        yield client


def submitted(client: Any, **job: Any) -> int:
    reply = client.post("/jobs", json={"graph": "rmat", **job})
    assert reply.status_code == 201, reply.text
    number: int = reply.json()["job"]
    return number


def ended(client: Any, number: int) -> dict[str, Any]:
    while not (found := client.get(f"/jobs/{number}", params={"seconds": 5}).json())["ended"]:
        pass
    return dict(found)


def test_a_job_from_its_submission_to_its_result(client: Any) -> None:
    number = submitted(client, program="sigps.apps:SSSP", params={"source": 3}, tenant="bob")
    about = ended(client, number)
    assert (about["state"], about["tenant"], about["program"]) == ("done", "bob", "SSSP")
    reply = client.get(f"/jobs/{number}/result")
    assert reply.headers["content-type"] == "application/vnd.apache.arrow.file"
    table = pyarrow.ipc.open_file(io.BytesIO(reply.content)).read_all()
    alone = sigps.run(sigps.apps.SSSP(source=3), GRAPH, device="python")
    assert table["id"].to_pylist() == alone.ids.tolist()
    assert table["distance"].to_pylist() == alone["distance"].tolist()
    assert about["supersteps"] == alone.supersteps
    assert client.get("/graphs").json() == {
        "rmat": {"vertices": GRAPH.num_vertices, "edges": GRAPH.num_edges}
    }
    assert number in [row["number"] for row in client.get("/jobs").json()]
    refused = client.get(f"/jobs/{number}/result", params={"part": "edges"})
    assert (refused.status_code, "keeps nothing on edges" in refused.text) == (400, True)


def test_values_on_edges_cross_too(client: Any) -> None:
    number = submitted(client, program="sigps.apps:EdgeTriangles")
    ended(client, number)
    reply = client.get(f"/jobs/{number}/result", params={"part": "edges"})
    assert reply.status_code == 200, reply.text
    table = pyarrow.ipc.open_file(io.BytesIO(reply.content)).read_all()
    alone = sigps.run(sigps.apps.EdgeTriangles(), GRAPH, device="cpu").edges
    for name in alone.fields:
        assert np.array_equal(np.asarray(table[name]), alone[name])


def test_cancel_and_limits_of_tenants(client: Any) -> None:
    first = submitted(client, **LONG, tenant="ada")
    refused = client.post("/jobs", json={**LONG, "tenant": "ada"})
    assert refused.status_code == 400
    assert "tenant 'ada' has 1 jobs that have not ended, and may have 1" in refused.json()["text"]
    assert client.get(f"/jobs/{first}").json()["ended"] is False
    assert client.get(f"/jobs/{first}/result").status_code == 400
    assert client.delete(f"/jobs/{first}").json()["cancelled"] is True
    assert ended(client, first)["state"] == "cancelled"
    reply = client.get(f"/jobs/{first}/result")
    assert (reply.status_code, reply.json()["error"]) == (409, "CancelledError")
    failed = submitted(client, program="sigps.apps:BFS", params={"source": -5})
    ended(client, failed)
    reply = client.get(f"/jobs/{failed}/result")
    assert (reply.status_code, reply.json()["error"]) == (409, "GraphError")
    assert "there is no vertex -5" in reply.json()["text"]


def test_page_metrics_and_overview(client: Any) -> None:
    ended(client, submitted(client, program="sigps.apps:WCC"))
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "WCC" in page.text
    assert "sigps_pool_ended_jobs_total" in client.get("/metrics").text
    assert [row["name"] for row in client.get("/overview").json()["graphs"]] == ["rmat"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"Authorization": "Bearer \u00e9"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "localhost:1"}, 200),
        ({"Authorization": "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()}, 200),
        ({"Authorization": "Basic " + base64.b64encode(b"me:wrong").decode()}, 401),
        ({"Authorization": "Basic !!"}, 401),
    ],
)
def test_who_may_ask(server: Server, headers: dict[str, str], status: int) -> None:
    assert server.http is not None
    encoded = {name: value.encode("utf-8") for name, value in headers.items()}
    for path in ("/", "/jobs", "/metrics", "/graphs"):
        reply = httpx.get(server.http.address + path, headers=encoded)
        assert reply.status_code == status
        assert TOKEN not in reply.text


def test_a_password_that_a_browser_keeps_changes_nothing(server: Server) -> None:
    assert server.http is not None
    basic = {"Authorization": "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()}
    before = len(server._pool.jobs())
    assert httpx.post(server.http.address + "/jobs", headers=basic, json=LONG).status_code == 401
    assert httpx.delete(server.http.address + "/jobs/0", headers=basic).status_code == 401
    assert httpx.post(server.http.address + "/jobs/0/suspend", headers=basic).status_code == 401
    assert len(server._pool.jobs()) == before


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "/jobs", b"", 400, "no JSON"),
        ("POST", "/jobs", b"\xff\x00", 400, "no JSON"),
        ("POST", "/jobs", b"[" * 100_000, 400, "no JSON"),
        ("POST", "/jobs", b"[1]", 400, "must be an object"),
        ("POST", "/jobs", b" " * ((1 << 20) + 1), 413, "more than"),
        ("POST", "/jobs", b'{"program": 5, "graph": "rmat"}', 400, "does not run '5'"),
        ("POST", "/jobs", b'{"program": "os:system", "graph": "rmat"}', 400, "does not run 'os:system'"),
        (
            "POST",
            "/jobs",
            b'{"program": "own.py:X", "graph": "rmat", "tenant": "lab"}',
            400,
            "does not run 'own.py:X' over HTTP",
        ),
        ("POST", "/jobs", b'{"program": "sigps.apps:WCC", "graph": "rmat", "code": "x"}', 400, "no 'code'"),
        ("POST", "/jobs", b'{"program": "sigps.apps:WCC", "graph": [1]}', 400, "no graph"),
        (
            "POST",
            "/jobs",
            b'{"program": "sigps.apps:WCC", "graph": "rmat", "params": {"x": 1}}',
            400,
            "no parameter 'x'",
        ),
        (
            "POST",
            "/jobs",
            b'{"program": "sigps.apps:WCC", "graph": "rmat", "options": {"device": "cpu"}}',
            400,
            "takes no option 'device'",
        ),
        ("GET", "/jobs/1e3", b"", 400, "no number of a job"),
        ("GET", "/jobs/99999", b"", 400, "there is no job 99999"),
        ("GET", "/jobs/0?seconds=nan", b"", 400, "must be 0 to 10"),
        ("POST", "/jobs/0/result", b"", 400, "not one of suspend, resume"),
        ("PUT", "/jobs", b"", 405, "nothing answers PUT '/jobs'"),
        ("GET", "/job", b"", 404, "nothing answers GET '/job'; there are /, /graphs, /jobs, "),
        ("GET", "/../../etc/passwd", b"", 404, ""),
    ],
)
def test_garbage_is_refused(client: Any, method: str, path: str, body: bytes, status: int, text: str) -> None:
    submitted(client, program="sigps.apps:WCC")
    reply = client.request(method, path, content=body)
    assert reply.status_code == status, reply.text
    assert text in reply.json()["text"]


def test_garbage_on_the_port_closes_its_own_connection(server: Server, client: Any) -> None:
    assert server.http is not None
    where = server.http.address.removeprefix("http://").split(":")
    for sent in (
        b"\x16\x03\x01" + bytes(200),
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
        b"\r\n" * 9,
        b"",
    ):
        with socket.create_connection((where[0], int(where[1])), 30) as stranger:
            try:
                stranger.sendall(sent)
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
    assert client.get("/graphs").status_code == 200


def test_an_unexpected_error_is_told_without_its_text(
    client: Any, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    def fail(_: Any) -> dict[str, Any]:
        raise RuntimeError("a secret of the server")

    monkeypatch.setitem(server._verbs, "graphs", fail)
    reply = client.get("/graphs")
    assert reply.status_code == 500
    assert "secret" not in reply.text


def test_the_port_is_free_when_it_has_ended_and_the_token_is_kept(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text("socket: s\ndevices: cpu\ngraphs: {}\nhttp: {port: 0}\n")
    tokens = []
    for _ in range(2):
        with Server(read_pool_file(tmp_path / "pool.yaml", None)) as server:
            assert server.http is not None
            path = Path(server.http.token_path)
            assert path == tmp_path / "s.token"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            tokens.append(path.read_text())
            address = server.http.address
            reply = httpx.get(address + "/jobs", headers={"Authorization": f"Bearer {tokens[-1].strip()}"})
            assert reply.json() == []
        with pytest.raises(httpx.ConnectError):
            httpx.get(address)
    assert tokens[0] == tokens[1]
    path.chmod(0o644)
    with (
        pytest.raises(ConfigError, match="others may read the token"),
        Server(read_pool_file(tmp_path / "pool.yaml", None)),
    ):
        pass
    path.write_text("short")
    path.chmod(0o600)
    with (
        pytest.raises(ConfigError, match="has no token"),
        Server(read_pool_file(tmp_path / "pool.yaml", None)),
    ):
        pass


@pytest.mark.parametrize(
    ("http", "text"),
    [
        ("{port: 0, host: 0.0.0.0}", "can be reached from other machines"),
        ("{port: 0, host: '::'}", "can be reached from other machines"),
        ("{port: 0, host: example.org}", "can be reached from other machines"),
        ("{port: 70000}", "http.port"),
        ("{port: 0, hots: x}", "hots"),
    ],
)
def test_addresses_of_other_machines_are_refused_unless_asked_for(
    tmp_path: Path, http: str, text: str
) -> None:
    (tmp_path / "pool.yaml").write_text(f"socket: s\ndevices: cpu\ngraphs: {{}}\nhttp: {http}\n")
    with pytest.raises(ConfigError, match=text), Server(read_pool_file(tmp_path / "pool.yaml", None)):
        pass
    anywhere = "socket: s\ndevices: cpu\ngraphs: {}\nhttp: {port: 0, host: 0.0.0.0, anywhere: true}\n"
    (tmp_path / "pool.yaml").write_text(anywhere)
    with Server(read_pool_file(tmp_path / "pool.yaml", None)) as server:
        assert server.http is not None
        reply = httpx.get(server.http.address.replace("0.0.0.0", "127.0.0.1"), headers={"Host": "elsewhere"})
        assert reply.status_code == 401


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "pool.yaml").write_text(
            f"socket: s\ndevices: cpu\ngraphs: {{}}\nhttp: {{port: {port}}}\n"
        )
        with (
            pytest.raises(ConfigError, match=f"nothing can listen at 127.0.0.1, port {port}"),
            Server(read_pool_file(tmp_path / "pool.yaml", None)),
        ):
            pass
