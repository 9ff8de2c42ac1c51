from __future__ import annotations

import threading

import pytest

from sigps.device.cpu import Threads


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 50])
def test_results_are_in_the_order_of_the_tasks(count: int, tasks: int) -> None:
    with Threads(count) as threads:
        for _ in range(20):
            assert threads.map(lambda i: i * i, range(tasks)) == [i * i for i in range(tasks)]


def test_whoever_calls_works_too_and_others_help() -> None:
    meeting = threading.Barrier(3, timeout=300)

    def meet(_: int) -> threading.Thread:
        meeting.wait()  # nobody passes before three are here
        return threading.current_thread()

    with Threads(3) as threads:
        found = threads.map(meet, range(3))
    assert len(set(found)) == 3
    assert threading.current_thread() in found


def test_nobody_is_waited_for_who_has_not_begun() -> None:
    is_free = threading.Event()
    with Threads(2) as threads:
        helper = threading.Thread(target=threads.map, args=(lambda i: is_free.wait(30), range(2)))
        helper.start()  # the crew's other thread is busy until it is let go
        assert threads.map(lambda i: i, range(10)) == list(range(10))
        is_free.set()
        helper.join()


@pytest.mark.parametrize("count", [1, 3])
def test_the_first_task_that_failed_is_told_when_all_have_ended(count: int) -> None:
    ended = []

    def fail(i: int) -> None:
        if i in (2, 4):
            raise ValueError(f"task {i}")
        ended.append(i)

    with Threads(count) as threads:
        with pytest.raises(ValueError, match="task 2"):
            threads.map(fail, range(6))
        assert sorted(ended) == ([0, 1] if count == 1 else [0, 1, 3, 5])
        assert threads.map(abs, [-1, -2]) == [1, 2]


def test_threads_start_when_they_have_something_to_do() -> None:
    before = set(threading.enumerate())  # some of which may end meanwhile
    with Threads(40) as threads:
        threads.map(abs, [-1])
        assert set(threading.enumerate()) <= before
        for num_tasks in (3, 2, 3):
            threads.map(abs, range(num_tasks))
        assert len(set(threading.enumerate()) - before) <= 2


def test_a_closed_crew_has_no_threads_left() -> None:
    before = set(threading.enumerate())
    threads = Threads(4)
    threads.map(abs, range(4))
    assert len(set(threading.enumerate()) - before) == 3
    threads.close()
    threads.close()
    assert set(threading.enumerate()) <= before
