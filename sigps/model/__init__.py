"""The program model in pure Python: `Vertex`, which users subclass, and what a subclass declares.

vertex.py       `Vertex`: the methods of a vertex and of the run
declaration.py  a class body to a `Declaration`: annotations read, types and defaults checked
aggregator.py   `Aggregator`, and what stands behind a `Shared` value
fields.py       `State`, `Param`, `EdgeState`, `Shared`, `VertexId`, measures, and the types that they may have
vector.py       `Vector`: a fixed number of numbers of one type
numbers.py      types of numbers, and what such a type makes of a number
records.py      states that are NamedTuples
view.py         what the interpreter passes to `compute()`: the vertex's `View`, and its edges
"""
