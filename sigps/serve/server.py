"""A server of jobs: one pool behind a Unix socket, for the programs of one user.

Who asks is what the system says of the other end, never what is in a message. No code comes over the socket: a program
is one of those that the server's file names, or a file or module that a process of its own imports (`own_code`). A
connection that sends what is no frame is closed; nothing else changes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import selectors
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sigps.errors import ConfigError, SigpsError, nearest
from sigps.extras import needs
from sigps.graph.generators.generate import generate
from sigps.graph.load import load
from sigps.host_memory import bytes_of
from sigps.job.config import GraphSection
from sigps.job.result import Result
from sigps.model.vertex import Vertex
from sigps.serve.job import Job
from sigps.serve.listening import listening
from sigps.serve.overview import Overview
from sigps.serve.own_code import KeptTables
from sigps.serve.pool import Pool, pool
from sigps.serve.pool_file import OwnCodeSection, PoolFile, TenantSection
from sigps.serve.recorder import Recorder
from sigps.serve.wire import FrameError, peer_uid, read_frame, reply_of, send_frame, send_tables, tables_of
from sigps.serve.workers import Kept

if TYPE_CHECKING:
    from sigps.serve.http import HttpFront

__all__ = ["Server"]

log = logging.getLogger(__name__)

Ended = Result | KeptTables | dict[str, Any]
"""What came of a job: its result, the tables of own code, or the reply that tells of its error."""

_CONNECTIONS = 128
_ENDED = 1000  # ended jobs of which the server still knows what came of them
_WAIT_SECONDS = 10.0
_OPTIONS = (
    "max_supersteps",
    "deterministic",
    "schedule",
    "direction",
    "precision",
    "asynchronous",
    "seed",
    "partitioner",
)


class Server:
    """A pool, and who asks it. Use it in a `with`: entering takes the socket and reads the graphs.

    Args:
        file: What to serve.
        listener: A socket that listens; None: at the path in the file.
        notes: To the process that starts another worker when this one dies (`supervisor`); None where there is none.
        kept: What that one remembers of workers before.

    Raises:
        ConfigError: On entering, if another server has the socket, or something else lies there.
        GraphError: On entering, if a graph cannot be read.
    """

    def __init__(
        self,
        file: PoolFile,
        listener: socket.socket | None = None,
        notes: socket.socket | None = None,
        kept: Kept | None = None,
    ) -> None:
        with needs("pyarrow"):
            import pyarrow  # noqa: F401
        self.file = file
        self._given_listener, self._notes = listener, notes
        self._kept = Kept(secrets.token_hex(8)) if kept is None else kept
        self._born, self._noting = self._kept.born, threading.Lock()
        self._lock, self._submitting = threading.Lock(), threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._ended: OrderedDict[int, Ended] = OrderedDict()
        self._connections: set[socket.socket] = set()
        self._woken: socket.socket
        self._waker: socket.socket
        self._pool: Pool
        self._recorder: Recorder
        self.http: HttpFront | None = None
        self._verbs: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "submit": self._submit,
            "jobs": lambda _: {"rows": [asdict(row) for row in self._pool.jobs()]},
            "overview": lambda _: {"overview": asdict(self.overview())},
            "graphs": self._graphs,
            "wait": self._wait,
            "cancel": self._cancel,
            "suspend": lambda message: {"suspended": self._change(message, "suspended")},
            "resume": lambda message: {"resumed": self._change(message, "resumed")},
            "result": self._result,
        }

    def __enter__(self) -> Server:
        with contextlib.ExitStack() as stack:
            self._woken, self._waker = map(stack.enter_context, socket.socketpair())
            self._listener = self._given_listener or stack.enter_context(listening(self.file.socket))
            self._pool, file = pool(**self.file.options), self.file
            if any(device.engine == "cuda" for device in self._pool._devices):
                # With the 5 ms of Python's own 64 jobs on a GPU took 756 to 766 ms instead of 704 to 722.
                sys.setswitchinterval(0.0005)
            self._recorder = stack.enter_context(  # before the pool: what it writes last has all jobs ended
                Recorder(self._pool.overview, file.page, file.metrics, file.every)
            )
            stack.enter_context(self._pool)
            for name, section in file.graphs.items():
                self._pool.graph(name, _read(section))
            self._go_on()
            if file.http is not None:
                from sigps.serve.http import HttpFront

                self.http = stack.enter_context(HttpFront(self, file.http))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            connections = list(self._connections)
        self._pool.stop()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._stack.close()

    def serve(self) -> None:
        """Answer until `stop`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._woken in ready:
                    return
                try:
                    connection, _ = self._listener.accept()
                except OSError as error:  # gone again, or no descriptor is left
                    log.warning("a connection was not taken: %s", error)
                    time.sleep(0.05)
                    continue
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def stop(self) -> None:
        """Let `serve` return; for signal handlers and other threads."""
        self._waker.send(b"\0")

    def _go_on(self) -> None:
        """Submit the jobs with a name that the worker before did not end under their numbers; keep what others left."""
        kept, self._pool.on_lost_gpu = self._kept, self._end_for_lost_gpu if self._notes else None
        self._ended |= kept.results
        for number, question in list(kept.named.items()):
            self._pool.count_jobs_from(number)
            try:
                self._submit(dict(question))
            except SigpsError as error:
                self._ended[number] = reply_of(error)
            else:
                if number in kept.suspended:
                    self._pool.suspend(self._jobs[number])
        self._pool.count_jobs_from(kept.first_number)

    def _end_for_lost_gpu(self, error: BaseException) -> None:
        """End this worker: no process can use a GPU after an illegal access. Another takes its place."""
        log.error("the GPU can be used no longer by this process: %s", error)
        self._note("lost", why=str(error)[:1000])
        os._exit(70)

    def _note(self, what: str, descriptors: Sequence[int] = (), **about: Any) -> None:
        """Tell the supervisor something of a job, and pass it descriptors."""
        if self._notes is not None:
            try:
                with self._noting:
                    send_frame(self._notes, {"do": what, "tables": len(descriptors), **about})
                    if descriptors:
                        send_tables(self._notes, descriptors)
            except (OSError, FrameError) as error:
                log.warning("a job is not known to the server's supervisor: %s", error)

    def reply(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question, with `kept` where that is a result. Threads may ask at once.

        Raises:
            SigpsError: If it is wrong, or nothing that this server knows.
        """
        verb = self._verbs.get(str(message.get("do")))
        if verb is None:
            raise ConfigError(f"this server does not know the question {str(message.get('do'))[:80]!r}")
        if message.get("server", self._born) != self._born:
            raise ConfigError("this server was started anew: jobs from before are gone; submit them again")
        return {"server": self._born, **verb(dict(message))}

    def overview(self) -> Overview:
        """Return the pool as it is, with its last minutes."""
        return self._recorder.overview()

    def _converse(self, connection: socket.socket) -> None:
        """Answer one connection until it closes."""
        with connection, contextlib.suppress(OSError):
            try:
                with self._lock:
                    is_full = len(self._connections) >= _CONNECTIONS
                    self._connections.add(connection)
                if (uid := peer_uid(connection)) not in (os.getuid(), 0):
                    raise ConfigError(f"this server is of another user; you are user {uid}")
                if is_full:
                    raise ConfigError(
                        f"this server answers {_CONNECTIONS} connections at once, and all are taken"
                    )
                while (message := read_frame(connection)) is not None:
                    self._answer(connection, message)
            except (ConfigError, FrameError) as error:
                log.warning("a connection was closed: %s", error)
                _refuse(connection, ConfigError(str(error)))
            finally:
                with self._lock:
                    self._connections.discard(connection)

    def _answer(self, connection: socket.socket, message: dict[str, Any]) -> None:
        descriptors: list[int] = []
        try:
            if message.get("version") != 1:
                raise ConfigError(f"this server does not know the question {str(message.get('do'))[:80]!r}")
            reply = self.reply(message)
            if "kept" in reply:
                kept = reply.pop("kept")
                descriptors = kept.duplicates() if isinstance(kept, KeptTables) else tables_of(kept)
                reply["tables"] = len(descriptors)
            send_frame(connection, reply)
            if descriptors:
                send_tables(connection, descriptors)
        except OSError:
            raise
        except Exception as error:  # whatever a question does, others are answered
            if not isinstance(error, SigpsError):
                log.exception("a question failed")
            send_frame(connection, reply_of(error))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _submit(self, message: dict[str, Any]) -> dict[str, Any]:
        tenant, priority, given = (message.get(key) for key in ("tenant", "priority", "options"))
        if not isinstance(tenant, str) or len(tenant) > 200:
            raise ConfigError(f"tenant={tenant!r} must be a name")
        if not isinstance(given, dict) or (wrong := [name for name in given if name not in _OPTIONS]):
            raise ConfigError(f"a server takes no option {wrong[0]!r}; it takes: {', '.join(_OPTIONS)}")
        if not isinstance(given.get("partitioner", ""), str):
            raise ConfigError("partitioner= must be a name: no code crosses the socket")
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise ConfigError(f"priority={priority!r} must be a whole number")
        ranks = message.get("ranks")
        limits, graph = self._limits(tenant), self._name(message.get("graph"))
        about = {"tenant": tenant, "weight": limits.weight, "priority": priority, **given}
        with self._submitting:  # so that limits hold, and programs are analysed one at a time
            with self._lock:
                mine = [other for other in self._jobs.values() if other.tenant == tenant]
            if limits.own_code is not None and message.get("program") not in self.file.programs:
                if message.get("name") is not None:
                    raise ConfigError("name= is not for own code, whose state is not saved: leave it out")
                own = limits.own_code
                if ranks not in (None, own.ranks):
                    raise ConfigError(
                        f"own code of tenant {tenant!r} runs on {own.ranks} ranks, not {str(ranks)[:40]}: the server's "
                        "file says so (own_code: ranks)"
                    )
                _check_limits(tenant, limits, mine, own.ranks * bytes_of(own.memory, "memory"))
                job = self._submit_own(message, graph, limits.own_code, about)
            else:
                program = self._program(message.get("program"), message.get("params"))
                about["ranks"] = 1 if ranks is None else ranks
                job = self._pool.submit(program, graph, name=message.get("name"), **about)
            with self._lock:
                self._jobs[job.number] = job
            try:
                _check_limits(tenant, limits, mine, job.num_devices * job.estimate.own_bytes)
            except ConfigError:
                job.cancel()
                raise
            finally:
                question = message if job.folder is not None else None
                self._note("took", job=job.number, question=question)
                job.future.add_done_callback(lambda future: self._keep(job, future))
        return {"job": job.number, "bytes": job.estimate.own_bytes, "seconds": job.estimate.seconds}

    def _submit_own(
        self, message: dict[str, Any], graph: str, own: OwnCodeSection, about: dict[str, Any]
    ) -> Job:
        """Take a job of a program that this process does not import."""
        return self._pool.submit_own(
            message.get("code"),  # type: ignore[arg-type]  # checked there
            graph,
            params=message.get("params"),
            folder=message.get("folder"),
            **own.model_dump(),
            **about,
        )

    def _program(self, name: Any, params: Any) -> Vertex:
        known = self.file.programs
        if name not in known if isinstance(name, str) else True:
            raise ConfigError(
                f"this server does not run {str(name)[:200]!r}{nearest(name, known)} Its file says which: programs, or "
                "own_code of a tenant, whose other programs have processes of their own"
            )
        if not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
            raise ConfigError("the parameters must be a mapping of names to values")
        return known[name](**params)

    def _limits(self, tenant: str) -> TenantSection:
        found = self.file.tenants.get(tenant, self.file.others)
        if found is None:
            known = ", ".join(self.file.tenants) or "none"
            raise ConfigError(
                f"this server has no tenant {tenant!r}{nearest(tenant, self.file.tenants)} It has: {known}"
            )
        return found

    def _name(self, graph: Any) -> str:
        """Return the name of the graph that a message asks for: it has the name, or what a job file says of it."""
        graphs = self.file.graphs
        if isinstance(graph, str):
            return graph
        for name, section in graphs.items():
            if section.model_dump(exclude_unset=True) == graph:
                return name
        known = (
            ", ".join(
                f"{name} ({', '.join(s.paths) or next(iter(s.generator or ()))})"
                for name, s in graphs.items()
            )
            or "none"
        )
        raise ConfigError(
            f"this server has no graph of the same file and options as the job's. It has: {known}. "
            "Name one: --graph NAME"
        )

    def _graphs(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"graphs": [[name, g.num_vertices, g.num_edges] for name, g in self._pool.graphs().items()]}

    def _wait(self, message: dict[str, Any]) -> dict[str, Any]:
        found = self._job(message)
        seconds = message.get("seconds")
        if not isinstance(seconds, (int, float)) or not 0 <= seconds <= _WAIT_SECONDS:
            raise ConfigError(f"seconds={seconds!r} must be 0 to {_WAIT_SECONDS:g}")
        if isinstance(found, Job):
            with contextlib.suppress(TimeoutError):
                found.future.exception(seconds)
            return {"ended": found.future.done()}
        return {"ended": True}

    def _cancel(self, message: dict[str, Any]) -> dict[str, Any]:
        found = self._job(message)
        return {"cancelled": isinstance(found, Job) and found.cancel()}

    def _change(self, message: dict[str, Any], what: str) -> bool:
        found, change = self._job(message), self._pool.suspend if what == "suspended" else self._pool.resume
        does = isinstance(found, Job) and change(found)
        if does:
            self._note(what, job=message["job"])
        return does

    def _result(self, message: dict[str, Any]) -> dict[str, Any]:
        found = self._job(message)
        if isinstance(found, Job):
            if not found.future.done():
                raise ConfigError(f"job {found.number} has not ended")
            error = found.future.exception()
            found = reply_of(error) if error is not None else found.future.result()
        return found if isinstance(found, dict) else {"kept": found}

    def _job(self, message: dict[str, Any]) -> Job | Ended:
        number = message.get("job")
        with self._lock:
            found = self._jobs.get(number) or self._ended.get(number) if isinstance(number, int) else None
        if found is None and self._kept.why and isinstance(number, int) and number < self._kept.first_number:
            raise ConfigError(
                f"job {number} is gone: {self._kept.why}. Another worker serves now. Submit it again; with a name it "
                "would have gone on there, up to twice"
            )
        if found is None:
            raise ConfigError(
                f"there is no job {str(number)[:40]}, or its result is no longer kept: submit it again"
            )
        return found

    def _keep(self, job: Job, future: Future[Result]) -> None:
        """Keep what came of a job, without its graph; forget the oldest of what is too much.

        Of a job with a name the supervisor keeps it, too.
        """
        error = future.exception()
        found: Ended = future.result() if error is None else reply_of(error)
        if job.folder is not None and isinstance(found, Result):
            try:
                found = KeptTables(tables_of(found))
            except OSError as error:  # no memory for another copy
                log.warning("the result of job %d would not outlive this worker: %s", job.number, error)
        with self._lock:
            self._ended[job.number] = found
            self._jobs.pop(job.number, None)
        if job.folder is not None:
            passed = found.descriptors if isinstance(found, KeptTables) else ()
            self._note("ended", passed, job=job.number, reply=found if isinstance(found, dict) else None)
        forgotten = []
        with self._lock:
            num_bytes = sum(_bytes_of(found) for found in self._ended.values())
            while len(self._ended) > 1 and (len(self._ended) > _ENDED or num_bytes > self.file.result_bytes):
                number, oldest = self._ended.popitem(last=False)
                num_bytes -= _bytes_of(oldest)
                forgotten.append(number)
        for number in forgotten:
            self._note("forgot", job=number)


def _refuse(connection: socket.socket, error: ConfigError) -> None:
    """Say why, and take in what still comes for a moment: closing at once would throw away the reply, too."""
    send_frame(connection, reply_of(error))
    connection.shutdown(socket.SHUT_WR)
    end = time.monotonic() + 1.0
    while (left := end - time.monotonic()) > 0:
        connection.settimeout(left)
        if not connection.recv(1 << 16):
            return


def _check_limits(tenant: str, limits: TenantSection, others: list[Job], own_bytes: int) -> None:
    if len(others) >= limits.jobs:
        raise ConfigError(
            f"tenant {tenant!r} has {len(others)} jobs that have not ended, and may have {limits.jobs}: wait for one"
        )
    total = sum(other.num_devices * other.estimate.own_bytes for other in others) + own_bytes
    if limits.num_bytes is not None and total > limits.num_bytes:
        raise ConfigError(
            f"jobs of tenant {tenant!r} would take {total:,} bytes by themselves, and may take {limits.num_bytes:,}: "
            "wait for one"
        )


def _read(section: GraphSection) -> Any:
    if section.path is not None:
        return load(section.path, **section.load_options)
    name, options = section.generator_call
    return generate(name, **options)


def _bytes_of(found: Ended) -> int:
    if isinstance(found, KeptTables):
        return found.num_bytes
    return sum(found._fields[name].nbytes for name in found.fields) if isinstance(found, Result) else 0
