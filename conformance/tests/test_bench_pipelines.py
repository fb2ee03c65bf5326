"""The pipelines of tf.data that are measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.bench import pipelines
from timberframe_conformance.bench.pipelines import BATCH, PIPELINES, Files


@pytest.mark.parametrize("name", [name for name in PIPELINES if "training" not in name])
def test_a_pipeline_gives_batches(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "RUNS", 3)
    call = pipelines.pipeline(tf, name, Files(tmp_path, 60, 60), lambda graph: tf.Session(graph=graph))
    found = call()
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else [found]
    assert {len(np.asarray(part)) for part in parts} == {BATCH}


def test_the_pipeline_of_a_training_step_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "RUNS", 3)
    (name,) = (name for name in PIPELINES if "training" in name)
    assert pipelines.pipeline(tf, name, Files(tmp_path, 9, 9), lambda graph: tf.Session(graph=graph))() is None


def test_there_are_ten() -> None:
    assert len(PIPELINES) == 10
