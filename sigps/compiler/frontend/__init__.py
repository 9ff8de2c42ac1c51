"""From a `Vertex` class to a `VertexProgram`: passes over the syntax tree of `compute()`, run by `analysis.py`.

The passes in order; each takes compute()'s body from the one before it and returns it with one thing replaced:

    1  subject.py        read the class: what each `self.x` means; parse compute() and the methods it calls, and in each
         keyed.py          write out the functions by which messages are grouped,
         desugar.py        write match, `:=`, enumerate, zip and `else` of loops in the longer form,
         constants.py      fold class constants and parameters that are not one number, drop dead branches,
         grammar.py        refuse what cannot be compiled, with what to write instead,
         names.py          give each global a name of the generated module
    2  prepare.py        put methods that act where they are called; check every `self.x`
       draws.py          number the random numbers, each on a line of its own
    3  sends.py          find the sends; where they allow it,
         edge_function.py  replace them by assignments to the outbox record, and build edge()
    4  messages.py       choose how `messages` is read, and replace each use (the walk is in reading.py), by
         slots.py          slots, where every use is a reduction, or every use finds the most common key;
         lists.py          positions in a list, of runs of one key where it is sorted
    5  edge_loops.py     replace loops over edges, and the sends that are left, by loops over array positions
    6  lower.py          replace `self.x` by local names
    7  combine.py        build lift(), merge(), key(), fold() and emit()
    8  analysis.py       put the functions together, and add claims: early exit here, the others in `compiler/proofs/`

Passes 4 and 5 share reductions.py, which matches `sum()` to `len()` and writes them out as loops; all share syntax.py,
small builders of trees.
"""
