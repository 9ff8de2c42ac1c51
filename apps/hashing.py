"""A hash of whole numbers: what looks random, and what any vertex can find of any other.

`self.random()` gives numbers to one vertex in one superstep. Where all supersteps have to find the same one, or both
ends of an edge, or where it belongs to a label, programs take this hash. Pairs and more are hashed one in the other:
`hashed(a, hashed(b, seed))`.

G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from sigps import wrapping


def hashed(number, seed):
    """Return a whole number of 64 bits, of either sign; of one seed no two numbers have the same.

    >>> hex(hashed(0, seed=0) % 2**64)
    '0xe220a8397b1dcdaf'
    >>> sorted(range(6), key=lambda v: hashed(v, seed=3))
    [2, 0, 3, 5, 1, 4]
    """
    x = wrapping(number + (seed + 1) * -0x61C8864680B583EB)
    x = wrapping((x ^ (x >> 30 & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47)
    x = wrapping((x ^ (x >> 27 & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15)
    return x ^ (x >> 31 & 0x1FFFFFFFF)
