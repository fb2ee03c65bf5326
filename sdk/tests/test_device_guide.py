"""The code in docs/write-a-device.md works as the page says."""

from __future__ import annotations

import contextlib
import io
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin import loader
from timberframe_sdk import hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin

PAGE = Path(__file__).parents[2] / "docs" / "write-a-device.md"
NAMES = ("acme", "acmewhole")


def code(beginning: str) -> str:
    """Returns the block of code that has this text."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    return next(block for block in blocks if beginning in block)


@pytest.fixture(scope="module")
def devices() -> Iterator[None]:
    """/device:ACME:0 and /device:ACMEWHOLE:0, of the code on the page."""
    assert not set(NAMES) & set(loader.registry.plugins)
    module: Any = types.ModuleType("acme")
    exec(
        code("class AcmeDevice(sdk.KernelDevice):\n    type, priority, host_memory = ") + code('"Sqrt"'),
        module.__dict__,
    )
    exec(code("class Compiled"), module.__dict__)
    whole = types.SimpleNamespace(timberframe_devices=hookimpl(lambda config: [module.WholeDevice()]))
    with loaded_plugin(NAMES[0], module), loaded_plugin(NAMES[1], whole):
        yield


def test_a_memory_limit_suffices_or_not_as_the_page_says(devices: None) -> None:
    program = code('with tf.device("/acme:1")')
    written = PAGE.read_text().split(f"{program}```\n\n```\n", 1)[1].split("```")[0]
    printed = io.StringIO()
    with tf.Graph().as_default(), contextlib.redirect_stdout(printed):
        exec(compile(program, "program.py", "exec"), {})
    assert printed.getvalue() == written


def test_the_kernel_with_a_status_word_gives_roots(devices: None) -> None:
    with tf.Graph().as_default(), tf.device("/acme:0"), tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.sqrt(tf.constant([1.0, 4.0]))), [1, 2])


def test_the_status_word_becomes_the_error_on_the_page(devices: None) -> None:
    shown = re.search(r"\n(Sqrt 'root': .*)  \[/device:ACME:0, ", PAGE.read_text())
    assert shown is not None
    with tf.Graph().as_default(), tf.device("/acme:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        root = tf.sqrt(x, name="root")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(root, {x: [1, -4, -9]})
    assert str(caught.value).startswith(f"{shown[1]}  [/device:ACME:0, ")


def test_the_device_that_compiles_whole_clusters_updates_variables(devices: None) -> None:
    with tf.Graph().as_default(), tf.device("/acmewhole:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        v = tf.Variable(np.ones(3, np.float32))
        y, updated, same = v * x + tf.reduce_sum(x), v.assign_add(x), tf.identity(x)
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(y, {x: [1, 2, 3]}), [7, 8, 9])
        np.testing.assert_array_equal(session.run([updated, same], {x: [1, 2, 3]}), [[2, 3, 4], [1, 2, 3]])
        np.testing.assert_array_equal(session.run(v), [2, 3, 4])


def test_the_device_that_compiles_whole_clusters_keeps_variables_after_an_error(devices: None) -> None:
    with tf.Graph().as_default(), tf.device("/acmewhole:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        v = tf.Variable(np.ones(3, np.float32))
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(v.assign_add(tf.check_numerics(x, "bad")), {x: [1, np.nan, 3]})
        np.testing.assert_array_equal(session.run(v), [1, 1, 1])
