"""From LLVM IR to machine code of this processor: optimised, kept on disk, loaded into the process."""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any

from llvmlite import binding

__all__ = ["INTERRUPTED", "MachineCode", "assemble", "interrupted", "interrupted_page", "processor"]

_page = mmap.mmap(-1, mmap.PAGESIZE)

interrupted = ctypes.c_uint8.from_buffer(_page)
"""Not 0 where compiled loops should end (`interrupt.py`); in a page of its own, which a GPU may read."""

INTERRUPTED = "sigps_interrupted"
"""Its name in compiled code."""


def interrupted_page() -> int:
    """Return where the page of `interrupted` begins, which is where that lies."""
    return ctypes.addressof(interrupted)


def processor() -> tuple[str, str]:
    """Return the name and the features of this processor, as LLVM calls them."""
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


@functools.cache
def _target() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name, features = processor()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=3, codemodel="jitdefault", jit=True
    )


def assemble(text: str) -> bytes:
    """Optimise a module, and return its object file."""
    target = _target()
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    passes = binding.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(target.emit_object(module))


class MachineCode:
    """An object file in the memory of this process, for as long as this object lives."""

    def __init__(self, code: bytes) -> None:
        binding.add_symbol(INTERRUPTED, ctypes.addressof(interrupted))
        empty = binding.parse_assembly("")
        self._engine = binding.create_mcjit_compiler(empty, _target_of_engine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return where a function begins."""
        return int(self._engine.get_function_address(name))


def _target_of_engine() -> Any:
    """Return a target machine, which the engine that takes it owns."""
    _target()
    return binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
