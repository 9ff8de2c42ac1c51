"""What an emitter of code can do, and the emitter that emits nothing and only finds types.

Handles are the emitter's own: a value of a number or vector, or a pointer of an array. Operations take numbers of one
type, or vectors of these, number by number; they are total: they have a result for all operands, as a machine has, and
never trap. `operators.py` makes Python of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sigps.native.types import Array, Number, Scalar, Vector

__all__ = ["Emitter", "Finder"]

Handle = Any
Block = Callable[[], Any]


class Emitter(Protocol):
    """Emits the body of one function, in order."""

    emits: bool
    leaves_at_once: bool
    """Whether an interrupted loop ends its function. Else it ends itself, as do those after it: others may wait."""

    def constant(self, kind: Scalar, value: Any) -> Handle: ...

    def variable(self, kind: Scalar | Array) -> Handle:
        """Return a new variable, zero at first."""
        ...

    def read(self, variable: Handle) -> Handle: ...

    def write(self, variable: Handle, value: Handle) -> None: ...

    def cast(self, value: Handle, kind: Scalar, to: Scalar) -> Handle:
        """Convert: integers wrap, floats to integers saturate and NaN is 0; to bool: whether it is not 0."""
        ...

    def binary(self, op: str, kind: Scalar, a: Handle, b: Handle) -> Handle:
        """`+ - *` (integers wrap), `/` (integers towards zero, b not 0 or -1), and of integers `% & | ^ << >>`.

        Shifts are by less than the width.
        """
        ...

    def bits(self, value: Handle, to: Number) -> Handle:
        """Return the bits of a float of 64 bits as an int, or of an int as a float."""
        ...

    def overflows(self, op: str, kind: Scalar, a: Handle, b: Handle) -> tuple[Handle, Handle]:
        """Return `+`, `-` or `*` of signed integers, and whether the true result is another."""
        ...

    def compare(self, op: str, kind: Scalar, a: Handle, b: Handle) -> Handle:
        """`== != < <= > >=`; a bool. Of floats false where one is NaN, but for `!=`."""
        ...

    def invert(self, value: Handle) -> Handle:
        """Return the opposite of a bool."""
        ...

    def select(self, condition: Handle, a: Handle, b: Handle, kind: Scalar) -> Handle: ...

    def choose(self, conditions: Handle, a: Handle, b: Handle, kind: Vector) -> Handle:
        """Return a vector with each number of a or of b, by a vector of bools."""
        ...

    def math(self, name: str, kind: Scalar, values: Sequence[Handle]) -> Handle:
        """Call a function of C's math library, of floats to a float of that type."""
        ...

    def load(self, array: Handle, kind: Array, at: Handle) -> Handle:
        """Return an element; `at` is an int."""
        ...

    def store(self, array: Handle, kind: Array, at: Handle, value: Handle) -> None: ...

    def splat(self, value: Handle, kind: Vector) -> Handle:
        """Return a vector whose numbers are all the same one."""
        ...

    def pack(self, values: Sequence[Handle], kind: Vector) -> Handle:
        """Return a vector of some numbers."""
        ...

    def item(self, vector: Handle, kind: Vector, at: Handle) -> Handle:
        """Return a number of a vector; `at` is an int from 0 to its length - 1."""
        ...

    def stretch(self, vector: Handle, kind: Vector, begin: int, count: int) -> Handle:
        """Return some numbers of a vector, one after the other, as a vector."""
        ...

    def read_item(self, variable: Handle, kind: Vector, at: Handle) -> Handle:
        """Return a number of a variable's vector."""
        ...

    def write_item(self, variable: Handle, kind: Vector, at: Handle, value: Handle) -> None: ...

    def some(self, vector: Handle, kind: Vector) -> Handle:
        """Tell whether any of a vector of bools is true."""
        ...

    def size(self, array: Handle) -> Handle:
        """Return the number of elements of an array, an int."""
        ...

    def part(self, array: Handle, kind: Array, begin: Handle, end: Handle) -> Handle:
        """Return elements begin..end, as an array."""
        ...

    def scratch(self, element: Scalar, size: int) -> Handle:
        """Return an array that lives as long as the call; its content is undefined."""
        ...

    def lowest_bit(self, mask: Handle) -> Handle:
        """Return the position of the lowest bit that is set in a uint64, an int; one must be."""
        ...

    def count_bits(self, mask: Handle) -> Handle:
        """Return how many bits are set in a uint64, an int."""
        ...

    def prefetch(self, array: Handle, kind: Array, at: Handle) -> None:
        """Load the cache line of an element, without waiting for it."""
        ...

    def exchange(self, array: Handle, kind: Array, at: Handle, value: Handle) -> Handle:
        """Write an element and return what it was, in one step that all threads see in one order."""
        ...

    def call(self, function: Any, values: Sequence[Handle]) -> list[Handle]:
        """Call another function of the module; return the parts of its result, and its fault."""
        ...

    def external(
        self, name: str, values: Sequence[Handle], results: Sequence[Scalar | Array]
    ) -> list[Handle]:
        """Call a function of the engine; return the parts of its result, and an int: not 0 where it did not fit."""
        ...

    def if_(self, condition: Handle, then: Block, otherwise: Block) -> None: ...

    def if_rarely(self, condition: Handle, then: Block) -> None:
        """Do something that almost never happens."""
        ...

    def interrupted(self) -> Handle:
        """Tell whether the user wants the run to end: a bool, read anew at every call."""
        ...

    def loop(self, body: Block) -> None:
        """Repeat until the body breaks."""
        ...

    def break_(self) -> None: ...

    def continue_(self) -> None: ...

    def return_(self, values: Sequence[Handle]) -> None: ...


class Finder:
    """Emits nothing: handles are None. The builder runs with it until the types of variables stay as they are.

    Args:
        guesses: Filled where a variable that is None so far is computed with: what it is given later may be an id.
            None where types are final.
    """

    emits, leaves_at_once = False, True

    def __init__(self, guesses: list[bool] | None = None) -> None:
        self.guesses = guesses

    def _nothing(self, *_: Any) -> None:
        return None

    constant = variable = read = write = cast = bits = binary = compare = invert = select = math = _nothing
    splat = pack = item = stretch = read_item = write_item = some = choose = _nothing
    load = store = size = part = scratch = prefetch = exchange = lowest_bit = count_bits = _nothing
    break_ = continue_ = return_ = interrupted = _nothing

    def overflows(self, *_: Any) -> tuple[None, None]:
        return None, None

    def call(self, function: Any, values: Sequence[Handle]) -> list[Handle]:
        return [None] * (function.num_results + 1)

    def external(
        self, name: str, values: Sequence[Handle], results: Sequence[Scalar | Array]
    ) -> list[Handle]:
        return [None] * (len(results) + 1)

    def if_(self, condition: Handle, then: Block, otherwise: Block) -> None:
        then()
        otherwise()

    def if_rarely(self, condition: Handle, then: Block) -> None:
        then()

    def loop(self, body: Block) -> None:
        body()
