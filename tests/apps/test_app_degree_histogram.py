"""Degree histograms against NumPy's histogram with edges at powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from app_judges import RANDOM, arcs_of, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import results_of

from sigps.apps import DegreeHistogram


def check(sample: Sample) -> None:
    sources = [s for s, _, _ in arcs_of(sample)]
    degrees = [sources.count(v) for v in vertices_of(sample)]
    bounds = [0, *(2**b for b in range(63)), np.inf]
    expected = np.histogram(np.array(degrees, float), bounds)[0]
    for way, result in results_of(DegreeHistogram(), sample, runs_of(sample)):
        assert result.aggregators["histogram"].tolist() == [
            *expected.tolist(),
            *[0] * (64 - len(expected)),
        ], way
        assert (result.fields, result.supersteps) == ((), 1), way


@pytest.mark.parametrize("name", NAMES)
def test_buckets_are_those_of_numpy(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_buckets_of_random_graphs(sample: Sample) -> None:
    check(sample)


def test_degrees_at_the_ends_of_buckets() -> None:
    degrees = [0, 1, 2, 3, 4, 7, 8, 15, 16, 1023, 1024]
    sources = [v for v, degree in enumerate(degrees) for _ in range(degree)]
    sample = Sample(sources, [t % 9 for t in range(len(sources))], vertices=list(range(len(degrees))))
    for way, result in results_of(DegreeHistogram(), sample, runs_of(sample)):
        assert result.aggregators["histogram"][:13].tolist() == [1, 1, 2, 2, 2, 1, 0, 0, 0, 0, 1, 1, 0], way
