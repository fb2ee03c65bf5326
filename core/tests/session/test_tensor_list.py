"""Lists of tensors as values: each keeps its elements, whichever others were made of it, and in constant time."""

from __future__ import annotations

import random
import time

import numpy as np

from timberframe_core.dtypes import float32
from timberframe_core.runtime.tensor_list import TensorList

ITEMS = [(np.array(i, np.float32), None) for i in range(50)]


def contents(values: TensorList) -> list[int | None]:
    return [None if item is None else int(item[0]) for item in values.items()]


def test_every_list_keeps_its_elements() -> None:
    choose = random.Random(0)
    made: list[tuple[TensorList, list[int | None]]] = [(TensorList(float32, (), []), [])]
    for _ in range(3000):
        values, expected = made[choose.randrange(max(0, len(made) - 20), len(made))]
        expected = list(expected)
        i = choose.randrange(len(expected) + 1)
        number = choose.randrange(50)
        if i < len(expected) and choose.random() < 0.3:
            values = values.popped()
            expected.pop()
        else:
            values = values.with_item(i, ITEMS[number])
            expected[i : i + 1] = [number]
        made.append((values, expected))
        seen, wanted = made[choose.randrange(len(made))]
        assert contents(seen) == wanted
    assert all(contents(values) == expected for values, expected in made)


def test_two_lists_that_began_as_one_grow_as_fast_as_one_alone() -> None:
    start = time.process_time()
    one = other = TensorList(float32, (), [])
    for i in range(20_000):
        one, other = one.with_item(i, ITEMS[1]), other.with_item(i, ITEMS[2])
    assert (contents(one)[-1], contents(other)[-1]) == (1, 2)
    assert time.process_time() - start < 2


def test_an_old_list_is_read_while_a_new_one_is_written() -> None:
    start = time.process_time()
    old = new = TensorList(float32, (), [ITEMS[3]] * 20_000)
    for i in range(20_000):
        assert old.get(i) is ITEMS[3]
        new = new.with_item(i, ITEMS[4])
    assert new.get(0) is ITEMS[4]
    assert time.process_time() - start < 2
