"""Programs compiled for CUDA, as far as it goes without a GPU: cubins, their code, types, macros and errors."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cells import program_of
from edge_programs import EdgeTriangles, Returns, Waves
from places import SUPPORT
from turns import in_turn, some_of
from worked_cases import COLUMNS, PROGRAMS

from sigps import CompileError, Vertex
from sigps.compiler.cpu.native import compile_for_cpu
from sigps.compiler.cuda import compile as cuda_compile
from sigps.compiler.cuda.compile import CudaProgram, compile_for_cuda, link
from sigps.compiler.cuda.functions import Functions
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption
from sigps.engine.gpu.memory_plan import shape_of
from sigps.errors import KernelError
from sigps.kernels import cuda as kernels
from sigps.kernels.cuda.abi import ARGUMENTS, HALT, OVERFLOW, RETIRE, SENT

for needed in ("cuda.core",):
    try:
        is_there = importlib.util.find_spec(needed) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        pytest.skip(f"{needed} is not installed: pip install 'sigps[cuda-link]'", allow_module_level=True)


ON_EDGES: dict[str, type[Vertex]] = {made.__name__: made for made in (EdgeTriangles, Waves, Returns)}


def compiled(
    program: str | Vertex, precision: Any = "double", arch: str = "sm_90", narrow_ids: bool = True
) -> CudaProgram:
    made = PROGRAMS[program]() if isinstance(program, str) else program
    return compile_for_cuda(analyse(made, precision), COLUMNS, narrow_ids=narrow_ids, arch=arch)


def linked_text(program: CudaProgram, arch: str) -> str:
    """Return what the linked reference kernel is as PTX: the last form in which functions have names."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    from sigps.device.linking import compile_source

    folder = Path(kernels.__file__).parent
    source = (folder / "gather_reference.cu").read_text()
    modules = [compile_source(source, "gather_reference.cu", arch, program.defines, folder)]
    codes = [ObjectCode.from_ltoir(module) for module in [*modules, *program.functions]]
    options = LinkerOptions(arch=arch, link_time_optimization=True, ptx=True)
    return bytes(Linker(*codes, options=options).link("ptx").code).decode().rstrip("\0")


@pytest.mark.parametrize("name", some_of(PROGRAMS, 8))
def test_programs_link(name: str) -> None:
    """In single precision; all are linked in double, below."""
    cubin = link(compiled(name, "single", "sm_80"), "gather_reference", "sm_80")
    assert cubin[:4] == b"\x7fELF"
    assert b"gather_reference" in cubin


@pytest.mark.parametrize("name", [*PROGRAMS, *ON_EDGES])
def test_the_functions_of_a_program_are_inlined(name: str) -> None:
    """What a warp found of common neighbours stays in registers, too."""
    text = linked_text(compiled(name if name in PROGRAMS else ON_EDGES[name]()), "sm_90")
    called = re.findall(r"^\s*call[.\w]*\s*(?:\([^)]*\)\s*,)?\s*(\w+)", text, flags=re.MULTILINE)
    assert [f for f in called if not f.startswith("__internal")] == []  # pow() is a function of CUDA's own
    assert "depot" not in text, "a row lies in local memory"


def nvdisasm() -> str:
    """Return the path of nvdisasm, or skip."""
    wheels = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    folders = [os.environ.get("PATH", ""), "/usr/local/cuda/bin", *map(str, wheels.glob("*/bin"))]
    found = shutil.which("nvdisasm", path=os.pathsep.join(folders))
    if found is None:
        pytest.skip("no nvdisasm: install the CUDA toolkit, or pip install nvidia-cuda-nvdisasm")
    return found


@pytest.mark.parametrize(
    ("name", "linked"),
    in_turn(
        ["BFS", "PageRank", "WCC", "SSSP", "forward", "listed"],
        [("gather_reference", "sm_80"), ("lease", "sm_90")],
    ),
)
def test_no_call_is_left_in_machine_code(name: str, linked: tuple[str, str], tmp_path: Path) -> None:
    tool, (kernel, arch) = nvdisasm(), linked
    file = tmp_path / "program.cubin"
    program = compiled(name, arch=arch)
    file.write_bytes(link(program, kernel, arch, shape_of(program).macros()))
    code = subprocess.run([tool, "-c", str(file)], capture_output=True, text=True, check=True).stdout
    called = re.findall(r"CALL\.\S+ `\(([^)]*)\)", code)
    # Division of doubles has a slow path out of line; a jump to the end is written as a call of a label.
    assert [f for f in called if "__internal" not in f and not f.startswith(".L_x")] == []
    assert "EXIT" in code


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *[(name, "double") for name in PROGRAMS],
        *[(n, "single") for n in ("PageRank", "SSSP", "market", "walk")],
    ],
)
def test_types_are_those_of_the_cpu(name: str, precision: Any) -> None:
    program = analyse(PROGRAMS[name](), precision)
    native = compile_for_cpu(program, COLUMNS)
    on_cuda = compile_for_cuda(program, COLUMNS, narrow_ids=False, arch="sm_90")
    assert on_cuda.record == native.record
    listed = program.consumption is Consumption.LISTED
    slots = native.slots
    if precision == "single":  # compute()'s own arithmetic is in float32 there
        slots = tuple(np.dtype(np.float32) if d == np.float64 else d for d in slots)
    assert on_cuda.slots == (() if listed else slots)
    assert on_cuda.states == program.state_dtypes
    assert on_cuda.message == program.message_dtypes


@pytest.mark.parametrize(
    ("name", "states", "slots", "record"),
    [
        ("BFS", ["int64", "int32"], ["int32"], []),
        ("WCC", ["int32"], ["int32"], ["int32"]),
        ("SSSP", ["float64", "int32"], ["float64", "int32"], ["float64"]),
        ("sum_combiner", ["int64"], ["int64"], ["int64"]),
        ("joined_offers", ["float64", "int64", "int32"], ["float64", "int64", "bool", "int32"], []),
        ("two_folds", ["int64", "int64"], ["int64", "int64"], ["int64"]),
    ],
)
def test_narrow_ids(name: str, states: list[str], slots: list[str], record: list[str]) -> None:
    narrow, wide = compiled(name), compiled(name, narrow_ids=False)
    assert [[d.name for d in row] for row in (narrow.states, narrow.slots, narrow.record)] == [
        states,
        slots,
        record,
    ]
    assert narrow.message == wide.message
    assert narrow.defines["SIGPS_ID"] == "int32_t"
    assert wide.defines["SIGPS_ID"] == "int64_t"
    assert np.dtype(np.int32) not in (*wide.states, *wide.slots, *wide.record)


@pytest.mark.parametrize(
    ("body", "record"),
    [
        ("self.send_to_neighbors(self.parent)", ["int32"]),
        ("self.send_to_neighbors(self.parent + 1)", ["int32"]),
        ("for edge in self.out_edges:\n    self.send(edge, self.parent + edge.capacity)", ["int64"]),
        (
            "for edge in self.out_edges:\n    if self.parent > edge.weight:\n        self.send(edge, self.parent)",
            ["int64", "int32"],
        ),
    ],
)
def test_records_that_are_only_sent_as_ids_are_narrow(body: str, record: list[str]) -> None:
    program = program_of(
        f"self.parent = min(messages, default=-1)\n{body}",
        fields="parent: State[VertexId] = -1",
        message="message=VertexId",
    )
    assert [d.name for d in compiled(program).record] == record


def test_filtered_slots_stay_wide() -> None:
    """Their neutral value does not fit an id's width."""
    program = program_of(
        "self.parent = min((m for m in messages if m > 3), default=-1)\nself.send_to_neighbors(self.id)",
        fields="parent: State[VertexId] = -1",
        message="message=VertexId",
    )
    assert compiled(program).slots[0] == np.int64


@pytest.mark.parametrize(
    ("name", "neutral", "words"),
    [
        ("PageRank", [0.0], "0x0ull"),
        ("WCC", [2**31 - 1], "0x7fffffffu"),
        ("two_folds", [2**63 - 1, -(2**63)], "0x7fffffffffffffffull, 0x8000000000000000ull"),
        ("truths", [False, True, 0, 0], "0x100ull, 0x0ull, 0x0ull"),
        ("presence", [], ""),
        ("combiner", [-math.inf], "0xfff0000000000000ull"),
        ("SSSP", [math.inf, 2**31 - 1], "0x7ff0000000000000ull, 0x7fffffffull"),
    ],
)
def test_neutral_slots(name: str, neutral: list[Any], words: str) -> None:
    program = compiled(name)
    row = np.dtype([(f"f{i}", d) for i, d in enumerate(program.slots)], align=True)
    assert program.neutral is not None
    assert len(program.neutral) == row.itemsize
    assert not neutral or list(np.frombuffer(program.neutral, row)[0]) == neutral
    assert program.defines["SIGPS_NEUTRAL_WORDS"] == words
    assert program.defines["SIGPS_NEUTRAL"] == "1"


@pytest.mark.parametrize("name", ["user_combiner", "joined_offers", "listed"])
def test_no_neutral_slots(name: str) -> None:
    program = compiled(name)
    assert program.neutral is None
    assert program.defines["SIGPS_NEUTRAL"] == "0"


@pytest.mark.parametrize(
    ("name", "defines"),
    [
        ("BFS", {"EARLY_EXIT": 1, "RECORD_BYTES": 0, "SLOTS_BYTES": 4, "SLOTS_ALIGN": 4, "LISTED": 0}),
        ("PageRank", {"EARLY_EXIT": 0, "NUM_AGGREGATES": 2, "IDENTITY_WORDS": "0x0ull, 0x0ull"}),
        (
            "SSSP",
            {"SLOTS_BYTES": 16, "SLOTS_ALIGN": 16, "EACH_SLOT(F)": "F(5, double, 0, 0) F(5, int32_t, 8, 0)"},
        ),
        ("WCC", {"NUM_SLOTS": 1, "EACH_SLOT(F)": "F(1, int32_t, 0, 0)"}),
        (
            "truths",
            {"EACH_SLOT(F)": "F(3, bool, 0, 0) F(4, bool, 1, 0) F(0, int64_t, 8, 0) F(0, int64_t, 16, 0)"},
        ),
        ("listed_offers", {"LISTED": 1, "MESSAGE_BYTES": 32, "MESSAGE_ALIGN": 16, "SLOTS_BYTES": 0}),
        ("postman", {"LISTED": 1, "DIRECT": 1}),
    ],
)
def test_macros(name: str, defines: dict[str, Any]) -> None:
    given = compiled(name).defines
    assert {macro: given[f"SIGPS_{macro}"] for macro in defines} == {m: str(v) for m, v in defines.items()}


def test_arguments_are_laid_out_as_in_cpp() -> None:
    from sigps.device.linking import compile_source

    assert ARGUMENTS.fields is not None
    claims = [f"offsetof(Arguments, {name}) == {field[1]}" for name, field in ARGUMENTS.fields.items()]
    flags = f"{HALT | RETIRE << 4 | SENT << 8 | OVERFLOW << 12}"
    claims += [
        f"sizeof(Arguments) == {ARGUMENTS.itemsize}",
        f"(HALT | RETIRE << 4 | SENT << 8 | OVERFLOW << 12) == {flags}",
        "sizeof(Slots) == SIGPS_SLOTS_BYTES",
        "alignof(Slots) == SIGPS_SLOTS_ALIGN",
    ]
    program = compiled("two_folds")
    text = '#define offsetof(t, f) __builtin_offsetof(t, f)\n#include "abi.cuh"\nusing namespace sigps;\n'
    text += "\n".join(f'static_assert({claim}, "");' for claim in claims)
    folder = Path(kernels.__file__).parent
    assert compile_source(text, "claims.cu", "sm_90", program.defines, folder)


@pytest.mark.parametrize("name", ["PageRank", "OutDegree", "market", "listed", "postman", "carried"])
def test_rows_of_any_size_are_declared(name: str) -> None:
    """A kernel may name every row, of programs that lack some, too."""
    from sigps.device.linking import compile_source

    text = """#include "abi.cuh"
    using namespace sigps;
    extern "C" __global__ void copy(Record *r, Slots *s, Message *m, Totals *t) {
      r[1] = r[0]; s[1] = s[0]; m[1] = m[0]; t[1] = identity_totals();
    #if SIGPS_NEUTRAL
      s[2] = neutral_slots();
    #endif
    }"""
    assert compile_source(text, "rows.cu", "sm_80", compiled(name).defines, Path(kernels.__file__).parent)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("y = (1, 2)", "keeps one type"),
        ("y = y + 'a'", "compute with numbers"),
        ("y = math.sqrt(1, 2)", "takes 1 argument here, not 2"),
        ("y = None", "keeps one type"),
        ("y = helper(1)", "missing a required argument"),
    ],
)
def test_what_cannot_be_compiled_points_at_its_line(line: str, says: str) -> None:
    before = "def helper(a, b):\n    return a + b"
    program = program_of(f"y = self.x\nif self.id > 1:\n    {line}\nself.x = y", before=before)
    with pytest.raises(CompileError, match=says) as caught:
        compiled(program)
    assert caught.value.source in (line, "self.x = y")
    assert "__" not in str(caught.value).partition("\n")[0]


def test_quotients_in_single_precision_take_no_double() -> None:
    program = program_of("self.x = 1.0 / (self.x / self.id) + math.sqrt(self.x * 0.1) - 3 * self.x")
    derived = analyse(program, "single")
    functions = Functions(derived, {})
    slots, record = functions.infer()
    layout = cuda_compile._layout(derived, slots, record, (), (), narrow_ids=True)
    text, _ = functions.source(layout, [])
    compute = text[text.index("f_compute") : text.index("sigps_deliver")]
    assert "sqrtf(" in compute
    assert "double" not in compute


@pytest.mark.parametrize(
    "expression",
    [
        "np.sqrt(y) + np.floor(y) * np.exp(-y) + np.log1p(y) + np.power(y, 2.0)",
        "np.sign(y) + np.maximum(y, 2.0) + np.arctan2(y, 1.0) + np.mod(y, 3.0) + np.abs(y)",
        "math.sqrt(y) + math.erf(y) + math.lgamma(y) + math.hypot(y, 2.0) + math.floor(y) + math.fmod(y, 2.0)",
        "math.gcd(self.id, 4) + np.gcd(self.id, 4) + np.cbrt(y) + math.cbrt(y)",
        "(self.id // 3) % 7 + y // 0.3 + y % 0.3 + y ** 2.5 + self.id ** 3 + round(y)",
    ],
)
def test_math_and_numpy_scalar_functions(expression: str) -> None:
    program = compiled(program_of(f"y = self.x\nself.x = {expression}"))
    assert link(program, "gather_reference", "sm_90")[:4] == b"\x7fELF"


def test_more_states_than_a_job_has_room_for() -> None:
    fields = "\n".join(f"s{i}: State[int] = 0" for i in range(33))
    with pytest.raises(CompileError, match="has 34 states; a GPU takes 32"):
        compiled(program_of("self.x = 1.0", fields=fields))


def test_more_values_on_edges_than_a_job_has_room_for() -> None:
    fields = "\n".join(f"e{i}: EdgeState[int] = 0" for i in range(17)) + "\n"
    with pytest.raises(CompileError, match="has 17 values kept on each edge; a GPU takes 16"):
        compiled(program_of("self.x = 1.0", fields=fields, before="from sigps import EdgeState"))


def test_kernels_that_are_wrong_say_why() -> None:
    program = compiled("WCC")
    with pytest.raises(KernelError, match=r"gather_reference\.cu cannot be compiled for sm_90"):
        link(program, "gather_reference", "sm_90", {"Arguments": "42"})
    with pytest.raises(KernelError, match="sm_10"):
        link(program, "gather_reference", "sm_10")


def test_no_kernel_has_a_lambda_of_any_type() -> None:
    """NVRTC 13.0 takes none, in which kernels must compile, too; later ones do."""
    files = sorted(Path(kernels.__file__).parent.glob("*.cu*"))
    generic = [file.name for file in files if re.search(r"\]\s*\([^)]*\bauto\b", file.read_text())]
    assert len(files) > 50
    assert generic == []


def test_a_second_process_needs_no_compiler(tmp_path: Path) -> None:
    script = f"""
import sys
sys.path[:0] = [{str(SUPPORT)!r}, {str(Path(__file__).parent)!r}]
import test_compile as tests
from sigps.compiler.cuda.compile import link
print(len(link(tests.compiled("WCC"), "gather_reference", "sm_90")))
print(sorted({{"cuda.core", "cupy"}} & set(sys.modules)))
"""
    environment = {**os.environ, "SIGPS_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert first[0] == second[0]
    assert "cuda.core" in first[1]
    assert second[1] == "[]"
