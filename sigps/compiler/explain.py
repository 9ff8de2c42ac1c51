"""What the compiler derived from a class, and why, as text."""

from __future__ import annotations

from typing import Any

from sigps.compiler.doubts import find_doubts
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.compiler.proofs import incremental, monotone, path_lengths, priority
from sigps.model.aggregator import Aggregator
from sigps.model.declaration import Declaration
from sigps.model.fields import Field
from sigps.model.vector import VectorType
from sigps.model.vertex import Vertex

__all__ = ["described", "example_of", "explain"]


def explain(program: type[Vertex], *, with_source: bool = False, **params: Any) -> str:
    """Describe a vertex class: what it declares, what was derived from compute(), and what prevents a faster run.

    Args:
        program: The class.
        with_source: Whether to show the generated functions.
        params: Parameters, where they matter; the others get an example value.

    Raises:
        CompileError: If the class cannot be compiled.
    """
    derived = analyse(example_of(program, params), program.declaration.precision)
    text = described(derived, program.declaration)
    return f"{text}\n\ngenerated functions\n\n{derived.source}" if with_source else text


def described(program: VertexProgram, declared: Declaration) -> str:
    """Describe what was derived from a class that declares this."""
    sections = [
        _declared(program, declared),
        _parts(declared),
        _derived(program),
        _obstacles(program),
        _doubts(program),
    ]
    return "\n\n".join(section for section in sections if section)


def example_of(cls: type[Vertex], given: dict[str, Any]) -> Vertex:
    """Return an instance with a value for every parameter that has none."""
    values = dict(given)
    missing = [f for f in cls.declaration.params if f.default is Field.REQUIRED and f.name not in given]
    for number, field in enumerate(missing):  # different ones: what conditions ask for
        is_length = field.name in cls.declaration.lengths
        values[field.name] = max(1, number) if is_length else _example_of(field, number)
    return cls(**values)


def _example_of(field: Field, number: int) -> Any:
    if field.limits is not None:
        example = field.limits.example(number)
        return [example] if field.is_table else example
    if field.type is None:
        return None
    return field.type([number] if field.is_table else number)


def _declared(program: VertexProgram, declared: Declaration) -> str:
    lines = [f"{program.name}  ({program.file}:{program.line})"]
    kinds = [f"{a.name}: {_kind(a)}" for a in program.aggregators]
    rows = {
        "states": ", ".join(map(_described, program.states)) or "none",
        "on edges": ", ".join(map(_described, program.edge_states)),
        "params": ", ".join(map(_described_param, declared.params)) or "none",
        "required": "; ".join(condition for _, condition in declared.conditions),
        "aggregators": ", ".join(kinds) or "none",
        "message": ", ".join(map(_described, program.message)) or "none",
        "precision": "single, where a run does not say" if declared.precision == "single" else "",
    }
    return "\n".join(lines + [f"  {name:<12} {value}" for name, value in rows.items() if value])


def _parts(declared: Declaration) -> str:
    """Return what became of the phases of a class of `sigps.GAS`."""
    rows = (f"  {name:<12} {text}" for name, text in declared.parts)
    return "written as phases\n" + "\n".join(rows) if declared.parts else ""


def _kind(aggregator: Aggregator[Any]) -> str:
    if aggregator.is_shared:
        return "shared, set between supersteps"
    is_number = aggregator.kind not in ("any", "all")
    return f"{aggregator.kind} of {aggregator.field.type.__name__}" if is_number else aggregator.kind  # type: ignore


def _described(field: Field) -> str:
    kind = "constant" if field.type is None else field.type.__name__
    begins = f" from {field.measure}" if field.measure else ""
    begins = f" from the vertex column {field.column.name!r}" if field.column is not None else begins
    kind = "VertexId" if field.is_vertex_id and not isinstance(field.type, VectorType) else kind
    return f"{field.name}: {kind}{' | None' if field.may_be_none else ''}{begins}"


def _described_param(field: Field) -> str:
    limits = f" {field.limits}" if field.limits is not None else ""
    default = f" = {field.default!r}" if field.default is not Field.REQUIRED and not field.is_table else ""
    return f"{_described(field)}{limits}{default}"


def _derived(program: VertexProgram) -> str:
    rows = [("messages", program.consumption.value)]
    if program.consumption is Consumption.GROUPED:
        key, weight = program.slots
        added = "counts the messages" if weight.text == "1" else f"adds up {weight.text}"
        rows.append(("by key", f"{key.text}: a table a vertex {added} of each, in O(degree)"))
    else:
        rows += [("combiner", f"{slot.op} of {slot.text}") for slot in program.slots]
    if program.sorts_by:
        rows.append(("by key", f"{program.sorts_by}: each list is sorted by it, in O(degree log degree)"))
    rows.append(("delivery", program.delivery.value))
    if program.delivery is Delivery.RECORD:
        size = len(program.record)
        rows.append(("outbox", f"{size} value{'s' * (size != 1)} a vertex"))
        read = [*program.edge_columns, *["the target's id"] * program.reads_target]
        rows.append(("edge reads", ", ".join(read) or "nothing: the message is the sender's alone"))
        rows.append(
            (
                "directions",
                "pull"
                if program.reads_all_at_once
                else "pull and push, chosen each superstep; or edge by edge",
            )
        )
        prefix = "no: " if program.early_exit is EarlyExit.NEVER else ""
        rows.append(("early exit", prefix + program.early_exit.value))
        obstacle = monotone.find_obstacle(program)
        better = "a message that is not better than its target's current value is dropped early"
        rows.append(("monotone", better if obstacle is None else f"no: {obstacle}"))
        obstacle = priority.find_obstacle(program)
        best = "priority order: the best value is sent alone, and is final where it arrives"
        rows.append(("asynchronous", best if obstacle is None else f"no: {obstacle}"))
        rows.append(("at once", _at_once(program)))
    rows.append(("barriers", _barriers(program)))
    if program.has_master:
        method = "next_phase()" if program.has_phases else "master()"
        on_device = "runs between supersteps on the device"
        on_host = f"Python on the host, between leases of the device: {program.master_obstacle}"
        rows.append((method, on_device if program.master is not None else on_host))
    together = "runs of run_many go side by side on CPU cores"
    together += ", with asynchronous=False" if program.priority_form is not None else ""
    obstacle = program.lanes_obstacle
    rows.append(("lanes", f"no, runs of run_many have a thread each: {obstacle}" if obstacle else together))
    rows.append(("updates", _updates(program)))
    return "derived\n" + "\n".join(f"  {name:<12} {value}" for name, value in rows)


def _updates(program: VertexProgram) -> str:
    """Return how the result follows when edges are inserted and deleted (`sigps.stream`)."""
    found = incremental.incremental(program)
    if found.kind == "full":
        is_linear = incremental.within_tolerance(program).kind == "linear"
        also = "; linear: on one rank stream(..., tolerance=...) follows its solution" if is_linear else ""
        return f"a full run after each batch: {found.why}{also}"
    names = ", ".join(found.witnesses)
    also = f"; valid, but perhaps not those of a full run: {names}" if names else ""
    return f"incremental ({found.kind}): {found.why}{also}"


def _barriers(program: VertexProgram) -> str:
    """Return whether a program runs with `asynchronous=True`, and why."""
    if program.asynchronous is None:
        return f"needed: {program.barrier_reason}"
    if (factor := program.asynchronous.factor) is not None:
        end = f"within such a change / (1 - {factor}) of the fixed point, in the norm in which it is one"
        alone = "by itself after 16 supersteps that progress slowly, on one rank of CPU cores"
        return (
            f"not needed: declared a contraction by {factor}. It ends where no vertex changes, {end}; {alone}"
        )
    parents = ", where weights are whole numbers" if program.asynchronous.has_parents else ""
    return f"not needed: with asynchronous=True the result is the same, bit for bit{parents}"


def _at_once(program: VertexProgram) -> str:
    """Return what of a program is found at once on a mesh (`engine/fixed_points.py`), or why nothing is."""
    if program.path_lengths is not None:
        return "on meshes with whole weights, path lengths are found by buckets and parents last"
    if program.priority_form is not None:
        return (
            "on meshes whose edges go both ways, the best value of each component is found by union and find"
        )
    return f"no: {path_lengths.find_obstacle(program)}, and there is no priority order"


def _doubts(program: VertexProgram) -> str:
    doubts = find_doubts(program)
    return "perhaps not what is meant\n" + "\n".join(f"  {doubt}" for doubt in doubts) if doubts else ""


def _obstacles(program: VertexProgram) -> str:
    if not program.obstacles:
        return "nothing prevents the fastest ways to run it"
    reasons = [*program.obstacles]
    if program.consumption is Consumption.LISTED:
        reasons.append("so one thread reads all messages of a vertex, however many they are")
    return "slower than it could be\n" + "\n".join(f"  {reason}" for reason in reasons)
