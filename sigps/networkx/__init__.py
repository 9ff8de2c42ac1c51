"""The NetworkX backend: NetworkX's own functions, served by vertex programs.

`networkx.pagerank(G, backend="sigps")` asks for one call, `networkx.config.backend_priority = ["sigps"]` for all
that are worth it. NetworkX finds `info.backend_info` and `backend.BACKEND` by entry points; users import nothing here.
"""
