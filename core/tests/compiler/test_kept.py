"""What is kept of values that can be made again, and what is dropped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from timberframe_core.compiler.kept import Kept


def found_again(keys: int, least: int, most: float) -> int:
    """Returns how many of so many keys of cost 1 are found where a program goes through
    them in turn, the tenth time.
    """
    kept: Kept[int, str] = Kept(least, most)
    hits = 0
    for turn in range(10):
        for key in range(keys):
            if kept.get(key) is None:
                kept.add(key, "made", 1)
            else:
                hits += turn == 9
    return hits


def test_what_there_is_room_for_is_all_found_again() -> None:
    assert found_again(64, 64, 0) == 64


def test_one_key_more_than_there_is_room_for_costs_few_others() -> None:
    assert found_again(65, 64, 0) > 55


def test_the_less_there_is_room_for_the_less_is_found() -> None:
    found = [found_again(keys, 64, 0) for keys in (65, 80, 128, 256)]
    assert found == sorted(found, reverse=True)
    assert 0 < found[-1] < 64


def test_cheap_values_are_kept_beyond_the_least_number_and_dear_ones_are_not() -> None:
    kept: Kept[int, str] = Kept(2, 100)
    for key in range(50):
        kept.add(key, "cheap", 2)
    assert len(kept) == 50
    kept.add(50, "dear", 90)
    assert len(kept) == 6
    assert kept.get(50) == "dear"
    kept.add(51, "dearer", 1000)
    kept.add(52, "dearer", 1000)
    assert (len(kept), kept.get(52)) == (2, "dearer")


def test_a_key_that_threads_add_at_once_is_kept_once() -> None:
    kept: Kept[str, int] = Kept(2, 0)
    kept.add("a", 1, 5)
    kept.add("a", 2, 5)
    assert (len(kept), kept.get("a")) == (1, 1)
    for key in "bcdefgh":
        kept.add(key, 3, 5)
    assert len(kept) == 2


def test_threads_may_add_and_drop_at_once() -> None:
    kept: Kept[int, int] = Kept(8, 0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: kept.add(i % 37, i, 1), range(20_000)))
    assert len(kept) == 8


def test_nothing_is_found_after_clear() -> None:
    kept: Kept[str, int] = Kept(1, 0)
    kept.add("a", 1, 5)
    kept.clear()
    assert (len(kept), kept.get("a")) == (0, None)
    kept.add("a", 2, 5)
    assert kept.get("a") == 2
