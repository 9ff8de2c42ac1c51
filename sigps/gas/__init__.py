"""Programs of phases: gather, merge, apply and scatter, or update() of edge values, written as vertex programs.

front_end.py  `GAS`, the class that users write a subclass of
phases.py     gather, apply and scatter: what a message is, and what becomes of edge values
updates.py    update(): the same
writing.py    compute(), in one of three forms, and the function that is made of its tree
keeps_best.py the proof that only vertices that changed need to be gathered
methods.py    a method of such a class as statements that can be put in place
"""
