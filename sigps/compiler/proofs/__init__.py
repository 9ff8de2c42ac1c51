"""Proofs about a derived program, which let an engine run it in a cheaper way with the same results.

A proof runs the program's functions on values that can only be compared and copied (`opaque.py`), in every order that
these may have, and compares the outcomes with a rule:

    monotone.py   a message changes a vertex only where its key is better than the vertex's current key
    together.py   in every superstep all vertices with out-edges send, or none does; by the paths through compute()
    priority.py   the best value may be sent before all others, and is final where it arrives
    asynchronous.py  a vertex may read its neighbours' last records at any time

A function that does more with such a value than the value allows raises, and then nothing is proved.
"""
