"""What several tests share of `test_ranks`."""

from __future__ import annotations

from battery import Sample
from ways import Way, assert_same, results_of

from sigps import Vertex


def assert_ranks_agree(program: Vertex, sample: Sample, ways: list[Way]) -> None:
    judge = results_of(program, sample, [Way(device="python")])[0][1]
    compiled = results_of(program, sample, [Way(device="cpu")])[0][1]
    for way, result in results_of(program, sample, ways):
        try:
            assert result.device == "cuda"
            assert_same(result, judge, exact=False)
            # The interpreter leaves out what a filter held back.
            assert [s.messages for s in result.stats] == [s.messages for s in compiled.stats]
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise
