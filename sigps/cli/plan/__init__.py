"""`sigps plan`: the memory and the time that a job takes, computed before its graph is loaded.

    command.py      the command: reads the job, prints what the others compute
    size.py         how many vertices and edges the job's graph has, without reading its edges
    memory.py       bytes that a rank keeps for graph, state and messages
    prediction.py   seconds of a superstep and of a search on some number of ranks, from measured times
    forecast.py     which of these times apply to a job; the table of predictions, and the advice under it

`sigps/system/DESIGN.md` compares predictions with measurements.
"""
