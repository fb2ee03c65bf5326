"""The generator of random ops, against the vectors that its authors published (Random123's kat_vectors)."""

import numpy as np
import pytest

from timberframe_ops.random.draws import box_muller, permutation, truncated_normal, uniform_int
from timberframe_ops.random.philox import Philox

VECTORS = [
    ((0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((2**64 - 1, 2**64 - 1, 2**64 - 1), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("state", "numbers"), VECTORS)
def test_blocks_are_the_published_ones(state: tuple[int, int, int], numbers: str) -> None:
    assert [f"{x:08x}" for x in Philox(*state).blocks(1)[0]] == numbers.split()


def test_a_counter_carries_into_its_upper_half() -> None:
    near_the_end = Philox(5, 2**64 - 2, 9)
    np.testing.assert_array_equal(near_the_end.blocks(4)[2:], Philox(5, 0, 10).blocks(2))


def test_skipping_leads_to_the_same_blocks() -> None:
    start = Philox(5, 2**64 - 2, 2**64 - 1)
    np.testing.assert_array_equal(start.skip(3).blocks(2), start.blocks(5)[3:])


def test_normals_come_in_pairs_of_sine_and_cosine() -> None:
    bits = np.array([0x7FFFFF, 0x200000], np.uint32)  # 1 - 2^-23 and a quarter turn
    sine, cosine = box_muller(bits, double=False)
    assert sine == pytest.approx(np.sqrt(-2 * np.log1p(-(2.0**-23))))
    assert abs(cosine) < 1e-10


def test_truncated_normals_lie_within_two_deviations() -> None:
    drawn = truncated_normal(Philox.seeded(1, 2), (10_001,), "float32")
    assert np.abs(drawn).max() < 2


def test_integers_reach_both_ends_of_their_range() -> None:
    drawn = uniform_int(Philox.seeded(1, 2), (500,), np.array(-2, np.int64), np.array(3, np.int64))
    assert set(drawn.tolist()) == {-2, -1, 0, 1, 2}


def test_a_permutation_holds_every_row_once() -> None:
    assert sorted(permutation(Philox.seeded(1, 2), 1000).tolist()) == list(range(1000))
