"""State logs: what a run saves between two supersteps, so that a later run can go on from there.

    state_log.py    when and where a run saves (`sigps.Checkpoint`), and the saves of one run
    writer.py       the threads that write one log
    files.py        the files of a log: names, checksums, the manifest; finding and removing logs
    lock.py         one job at a time writes in a folder
    resume.py       the newest log that belongs to a job, and its rows sent to the ranks that own them
    history.py      the logs in a folder without their job: for `sigps log`
    trace.py        the history of traced vertices, as Parquet

A log is a folder that holds one part for each rank that wrote it, and a manifest, which is written last.
"""
