"""Fault detection: ranks that die, stop or hang end the run, with a message that names them.

    watch.py        the user's limits (`sigps.Faults`), and an exchange that reports when this rank waits
    detector.py     one run on one rank: heartbeats out and in, and what counts as a fault
    fault.py        a fault, and the message that describes it
    connections.py  the TCP connections of a group, which stay from run to run
    rendezvous.py   how these connections are made
    monitor.py      the thread that runs the detector
    watchdog.py     the process that reports a death after which no rank lives long enough to do so

Start reading at `detector.py`.
"""
