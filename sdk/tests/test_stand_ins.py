"""Where no package brings the CPU's kernels, the SDK's own device stands in for them, and says so."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

from timberframe_core.plugin import loader

PROGRAM = """
from importlib import metadata

entries = [e for d in metadata.distributions() for e in d.entry_points if e.group != "timberframe"]
metadata.entry_points = lambda **given: metadata.EntryPoints(entries).select(**given)

import timberframe as tf

x = tf.placeholder(tf.float32, [None, 2])
with tf.device("/cpu:0"):
    y = tf.matmul(tf.tanh(x), [[1.0], [2.0]])
    words = tf.gather(["a", "b"], [1, 0])
with tf.Session() as session:
    result, texts = session.run([y, words], {x: [[0.5, 0.0]]})
print(round(float(result[0, 0]), 6), texts.tolist(), [d.spec for d in session.list_devices()])
"""


@pytest.fixture
def without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [e for d in metadata.distributions() for e in d.entry_points if e.group != loader.ENTRY_POINT_GROUP]

    def others(**given: Any) -> metadata.EntryPoints:
        return metadata.EntryPoints(entries).select(**given)

    monkeypatch.setattr(metadata, "entry_points", others)


def test_a_program_for_the_cpu_runs_without_a_plugin() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "0.462117 [b'b', b'a'] ['/device:CPU:0']\n"
    assert done.stderr.count("install timberframe-cpu for a fast one") == 1


def test_a_stand_in_has_the_name_and_the_selection_of_what_it_stands_in_for(without_plugins: None) -> None:
    registry = loader.PluginRegistry()
    (plugin,) = registry.load(["cpu"])
    (device,) = registry.make_devices(plugin, {"count": {}, "memory_limit": {}})
    assert (device.spec, plugin.distribution, plugin.stands_in) == ("/device:CPU:0", "timberframe-sdk", True)
    assert plugin.caution.startswith("is the stand-in of timberframe-sdk ")


def test_nothing_stands_in_for_a_plugin_that_is_installed_or_registered(without_plugins: None) -> None:
    registry = loader.PluginRegistry()
    own = registry.add("cpu", object())
    registry.discover()
    assert registry.plugins == {"cpu": own}
    assert not own.stands_in
