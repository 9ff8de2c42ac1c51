"""A server of jobs over HTTP: the questions of its socket, for programs that are not in Python, and browsers.

Whoever asks must know a token, which lies in a file that only the server's user can read. `Authorization: Bearer TOKEN`
goes with each request; to look at something, a browser may send the token as a password (`Basic`). A browser sends
that also for pages of others, so that what changes something takes `Bearer` alone. There are no sessions and no
cookies. No code crosses: programs are those that the server's file names.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ipaddress
import json
import logging
import os
import secrets
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from sigps.errors import ConfigError, SigpsError
from sigps.extras import needs
from sigps.report.metrics import check_metrics_package
from sigps.serve.metrics import metrics_text
from sigps.serve.overview import Overview
from sigps.serve.own_code import KeptTables
from sigps.serve.page import page
from sigps.serve.pool_file import HttpSection, PoolFile
from sigps.serve.wire import LARGEST_FRAME, reply_of, tables_of

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["HttpFront", "application"]

log = logging.getLogger(__name__)

_CONNECTIONS = 128
_LONGEST_WAIT = 10.0
_LOOK_SECONDS = 0.02
_PIECE = 1 << 20
_ARROW = "application/vnd.apache.arrow.file"
_OF_SUBMIT = ("program", "params", "graph", "tenant", "priority", "name", "ranks", "options")


class Answers(Protocol):
    """Who answers; `server.Server` does."""

    file: PoolFile

    def reply(self, message: Mapping[str, Any]) -> dict[str, Any]: ...

    def overview(self) -> Overview: ...


class HttpFront:
    """Answers HTTP in a thread of its own. Use it in a `with`: entering takes the port.

    Args:
        server: Who answers.
        section: Where, and for whom.

    Attributes:
        address: As in `http://127.0.0.1:8787`.
        token_path: Where the token lies.

    Raises:
        ConfigError: On entering, if a package is missing, the address is refused or taken, or the token's file is
            no secret.
    """

    def __init__(self, server: Answers, section: HttpSection) -> None:
        with needs("Starlette and uvicorn", "http"):
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        self._server, self._section = server, section
        self.address, self.token_path = "", str(section.token)

    def __enter__(self) -> HttpFront:
        import uvicorn

        section = self._section
        is_local = _check_host(section)
        app = application(self._server, _token(self.token_path), is_local=is_local)
        listener = _listening(section.host, section.port)
        host, port = listener.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            lifespan="off",
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._listener, self._http = listener, uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="sigps http", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.should_exit = True
        self._thread.join(10.0)
        self._listener.close()

    def _serve(self) -> None:
        try:
            self._http.run(sockets=[self._listener])
        except Exception:  # the socket's clients are answered as before
            log.exception("HTTP is no longer answered")


def application(server: Answers, token: str, *, is_local: bool = True) -> Starlette:
    """Return the application, for a server of its own or another one.

    Args:
        server: Who answers.
        token: What clients must know.
        is_local: Whether only names of this machine are answered to (`Host`).
    """
    with needs("Starlette", "http"):
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, Response, StreamingResponse
        from starlette.routing import Route

    def answer(function: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return an endpoint that checks who asks, and tells of errors."""

        async def endpoint(request: Request) -> Response:
            refused = _refusal(request, token, is_local=is_local)
            if refused is not None:
                status, text = refused
                told = {"WWW-Authenticate": 'Basic realm="sigps"'} if status == 401 else None
                return JSONResponse({"error": "ConfigError", "text": text}, status, told)
            try:
                response: Response = await function(request)
            except _TooLargeError:
                text = f"a body of more than {LARGEST_FRAME:,} bytes"
                return JSONResponse({"error": "ConfigError", "text": text}, 413)
            except SigpsError as error:
                return JSONResponse(_told(error), 400)
            except Exception as error:
                log.exception("a request failed")
                return JSONResponse({"error": type(error).__name__, "text": "see the server's log"}, 500)
            response.headers.update({"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"})
            return response

        return endpoint

    async def asked(what: str, **about: Any) -> dict[str, Any]:
        return await asyncio.to_thread(server.reply, {"do": what, **about})

    async def submit(request: Request) -> Response:
        given = await _body(request)
        if unknown := [str(name) for name in given if name not in _OF_SUBMIT]:
            raise ConfigError(f"a job has no {unknown[0][:80]!r}; it has: {', '.join(_OF_SUBMIT)}")
        name = given.get("program")
        if name not in server.file.programs if isinstance(name, str) else True:
            raise ConfigError(
                f"this server does not run {str(name)[:200]!r} over HTTP: its file says which (programs)"
            )
        about = {"params": {}, "tenant": "", "priority": 0, "options": {}, **given}
        return JSONResponse(await asked("submit", **about), 201)

    async def jobs(_: Request) -> Response:
        return JSONResponse((await asked("jobs"))["rows"])

    async def graphs(_: Request) -> Response:
        rows = (await asked("graphs"))["graphs"]
        return JSONResponse({name: {"vertices": n, "edges": m} for name, n, m in rows})

    async def job(request: Request) -> Response:
        number, end = _number(request), time.monotonic() + _seconds(request)
        while True:
            ended = server.reply({"do": "wait", "job": number, "seconds": 0})["ended"]
            if ended or time.monotonic() >= end:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        rows = [row for row in (await asked("jobs"))["rows"] if row["number"] == number]
        return JSONResponse({"ended": ended, **(rows[0] if rows else {"number": number})})

    async def cancel(request: Request) -> Response:
        return JSONResponse(await asked("cancel", job=_number(request)))

    async def change(request: Request) -> Response:
        what = str(request.path_params["change"])
        if what not in ("suspend", "resume"):
            raise ConfigError(f"{what[:80]!r} is not one of suspend, resume")
        return JSONResponse(await asked(what, job=_number(request)))

    async def result(request: Request) -> Response:
        reply = await asked("result", job=_number(request))
        if "kept" not in reply:
            return JSONResponse(reply, 409)
        kept, part = reply["kept"], request.query_params.get("part", "vertices")
        if part not in ("vertices", "edges"):
            raise ConfigError(f"part={part[:80]!r} is not one of vertices, edges")
        tables = (
            kept if isinstance(kept, KeptTables) else KeptTables(await asyncio.to_thread(tables_of, kept))
        )
        number = 1 if part == "edges" else 0
        if number >= len(tables.descriptors):
            raise ConfigError("the program keeps nothing on edges")
        size = os.fstat(tables.descriptors[number]).st_size
        told = {"Content-Length": str(size)}
        return StreamingResponse(_pieces(tables, number, size), 200, told, media_type=_ARROW)

    async def overview(_: Request) -> Response:
        return JSONResponse((await asked("overview"))["overview"])

    async def metrics(_: Request) -> Response:
        check_metrics_package()
        text = await asyncio.to_thread(metrics_text, server.overview())
        return Response(text, media_type="text/plain; version=0.0.4")

    async def look(_: Request) -> Response:
        text = await asyncio.to_thread(page, server.overview(), server.file.every)
        return Response(text, media_type="text/html")

    routes = [
        ("/", look, "GET"),
        ("/jobs", jobs, "GET"),
        ("/jobs", submit, "POST"),
        ("/jobs/{number}", job, "GET"),
        ("/jobs/{number}", cancel, "DELETE"),
        ("/jobs/{number}/result", result, "GET"),
        ("/jobs/{number}/{change}", change, "POST"),
        ("/graphs", graphs, "GET"),
        ("/overview", overview, "GET"),
        ("/metrics", metrics, "GET"),
    ]

    async def elsewhere(request: Request, error: Exception) -> Response:
        known = ", ".join(sorted({path for path, _, _ in routes}))
        text = f"nothing answers {request.method[:10]} {request.url.path[:80]!r}; there are {known}"
        reply = reply_of(ConfigError(text))
        return JSONResponse(reply, getattr(error, "status_code", 404))

    return Starlette(
        routes=[Route(path, answer(made), methods=[method]) for path, made, method in routes],
        exception_handlers={404: elsewhere, 405: elsewhere},
    )


class _TooLargeError(Exception):
    """A body is larger than any question."""


def _refusal(request: Request, token: str, *, is_local: bool) -> tuple[int, str] | None:
    """Return the status and the text for who may not ask this; None for who may."""
    if is_local and not _is_name_of_this_machine(request.headers.get("host", "")):
        return 421, "this server answers to names of this machine: 127.0.0.1 or localhost"
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    looks = request.method in ("GET", "HEAD")
    if scheme.lower() == "basic" and looks:
        with contextlib.suppress(binascii.Error, ValueError):
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            scheme = "bearer"
    if scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), token.encode()):
        return None
    return 401, "give the token of the server's file: Authorization: Bearer TOKEN"


def _is_name_of_this_machine(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request brings."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > LARGEST_FRAME:
            raise _TooLargeError
    try:
        found = json.loads(bytes(parts))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"the body must be an object of JSON, not {type(found).__name__}")
    return found


def _number(request: Request) -> int:
    given = str(request.path_params["number"])
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise ConfigError(f"{given[:40]!r} is no number of a job")
    return int(given)


def _seconds(request: Request) -> float:
    """Return how long a request waits for the end of a job."""
    given = request.query_params.get("seconds", "0")
    with contextlib.suppress(ValueError):
        if 0 <= float(given) <= _LONGEST_WAIT:
            return float(given)
    raise ConfigError(f"seconds={given[:40]!r} must be 0 to {_LONGEST_WAIT:g}; ask again for more")


async def _pieces(tables: KeptTables, number: int, size: int) -> AsyncIterator[bytes]:
    """Yield what a table has; it is kept for as long."""
    for begin in range(0, size, _PIECE):
        yield os.pread(tables.descriptors[number], min(_PIECE, size - begin), begin)


def _told(error: SigpsError) -> dict[str, Any]:
    reply = reply_of(error)
    return {"error": reply["error"], "text": reply["text"]}


def _check_host(section: HttpSection) -> bool:
    """Tell whether an address is of this machine alone; refuse another one that was not asked for."""
    try:
        is_local = section.host == "localhost" or ipaddress.ip_address(section.host).is_loopback
    except ValueError:
        is_local = False
    if not is_local and not section.anywhere:
        raise ConfigError(
            f"http: host: {section.host} can be reached from other machines, and what crosses is not encrypted. Use "
            "127.0.0.1 and a tunnel or a proxy, or say anywhere: true"
        )
    return is_local


def _listening(host: str, port: int) -> socket.socket:
    try:
        (family, kind, protocol, _, where), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(where)
            found.listen(64)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"http: nothing can listen at {host}, port {port}: {error.strerror or error}"
        ) from None
    return found


def _token(path: str) -> str:
    """Return the token in a file, which is made where it is missing; only its user may read it.

    Raises:
        ConfigError: If others may read it, it is no token, or it cannot be made.
    """
    try:
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        with open(path) as file:
            about = os.fstat(file.fileno())
            found = file.read(1000).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"http: the token's file {path} cannot be read or made: {why}") from None
    if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise ConfigError(f"http: others may read the token in {path}: chmod 600 it, or remove it")
    if len(found) < 16 or not found.isascii() or not found.isprintable() or " " in found:
        raise ConfigError(f"http: {path} has no token: 16 characters or more without spaces")
    return found
