import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.graph import random_bits as rb

WORDS = st.integers(0, 2**64 - 1)


def test_splitmix64_gives_the_published_sequence():
    # The first five numbers of the generator started at 1234567.
    words = np.array([1234567 + (i + 1) * rb.GOLDEN & (2**64 - 1) for i in range(5)], dtype=np.uint64)
    assert rb.splitmix64(words).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_splitmix64_leaves_its_argument():
    words = np.array([1, 2, 3], dtype=np.uint64)
    rb.splitmix64(words)
    assert words.tolist() == [1, 2, 3]


@given(WORDS)
def test_splitmix64_of_one_word_is_its_twin(word):
    assert rb.splitmix64_int(word) == rb.splitmix64(np.array([word], dtype=np.uint64))[0]


@given(st.lists(st.integers(0, 2**58 - 1), max_size=5), st.integers(0, 63), st.integers(0, 2**63 - 1))
def test_random_bits_follow_the_written_formula(counters, lane, seed):
    expected = [
        rb.splitmix64_int((counter * 64 + lane + (seed + 1) * 0x9E3779B97F4A7C15) % 2**64)
        for counter in counters
    ]
    assert rb.random_bits(counters, lane, seed).tolist() == expected


@given(st.lists(WORDS, min_size=1, max_size=20), st.floats(0, 1))
def test_threshold_compares_whole_numbers_as_their_fractions_compare(words, probability):
    bits = np.array(words, dtype=np.uint64)
    below = bits >> np.uint64(11) < np.uint64(rb.threshold(probability))
    assert below.tolist() == [(word >> 11) * 2.0**-53 < probability for word in words]


@given(WORDS, st.integers(1, 2**32))
def test_below_scales_the_top_bits(word, bound):
    assert rb.below(np.array([word], dtype=np.uint64), bound).tolist() == [(word >> 32) * bound >> 32]


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 100))
def test_hash_of_a_pair_has_no_direction(first, second, seed):
    u, v = np.array([first]), np.array([second])
    assert rb.hash_pairs(u, v, seed) == rb.hash_pairs(v, u, seed)


def test_hash_of_a_pair_tells_pairs_and_seeds_apart():
    u, v = (ends.ravel() for ends in np.meshgrid(np.arange(60), np.arange(60)))
    ordered = u <= v
    hashes = [rb.hash_pairs(u[ordered], v[ordered], seed) for seed in (1, 2)]
    assert np.unique(np.concatenate(hashes)).size == 2 * 60 * 61 // 2


@pytest.mark.parametrize("size", [*range(20), 31, 32, 33, 1000, 65536, 65537])
@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
def test_permute_is_a_bijection(size, key):
    values = np.arange(size)
    images = rb.permute(values, size, key)
    assert np.array_equal(np.sort(images), values)


@settings(deadline=None)
@given(st.integers(1, 2**62), st.integers(0, 2**64 - 1), st.data())
def test_permute_of_large_sizes_stays_inside_and_keeps_values_apart(size, key, data):
    values = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=10, unique=True)), dtype=np.int64)
    images = rb.permute(values, size, key)
    assert np.all((images >= 0) & (images < size))
    assert np.unique(images).size == values.size


def test_permute_takes_each_value_alone_as_among_others():
    together = rb.permute(np.arange(100), 100, 9)
    alone = [int(rb.permute(np.array([value]), 100, 9)[0]) for value in range(100)]
    assert together.tolist() == alone


def test_permute_with_a_key_for_each_value_is_many_permutations():
    keys = np.array([3, 2**64 - 1, 5, 3], dtype=np.uint64)
    values = np.array([0, 1, 6, 6])
    expected = [int(rb.permute(values[i : i + 1], 7, int(keys[i]))[0]) for i in range(4)]
    assert rb.permute(values, 7, keys).tolist() == expected


def test_permute_sends_every_value_everywhere_equally_often():
    size, num_keys = 11, 4400
    keys = np.arange(num_keys, dtype=np.uint64)
    counts = np.array(
        [
            np.bincount(rb.permute(np.full(num_keys, value), size, keys), minlength=size)
            for value in range(size)
        ]
    )
    # 400 are expected in each of 121 cells, with a standard deviation of 19.1.
    assert np.abs(counts - 400).max() < 5 * 19.1


def test_subkeys_differ_by_seed_and_purpose():
    assert len({rb.subkey(seed, purpose) for seed in range(20) for purpose in range(20)}) == 400


def test_examples_hold():
    assert doctest.testmod(rb).attempted > 0
    assert doctest.testmod(rb).failed == 0
