"""The functions of a vertex program with a type for every value, and the machine code that they become.

types.py      what a value can be
builder.py    a function's tree to calls of an emitter, once for each combination of argument types
operators.py  what Python's operators and functions mean for numbers, in terms of an emitter's few operations
emitter.py    what an emitter can do; one that only finds types
llvm.py       an emitter of LLVM IR
"""
