"""What `import timberframe` loads, and what is loaded only when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import timberframe as tf

LATER = (
    "google.protobuf", "importlib.metadata", "safetensors", "scipy", "packaging", "timberframe.saved_model",
    "timberframe.eager", "timberframe_contrib", "timberframe.train", "timberframe.saving", "timberframe.nn",
    "timberframe.api.sparse_math", "timberframe_ops.training", "timberframe_ops.passes.raising.graphs",
    "numpy.random", "hashlib", "tempfile",
)  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules of a process that has imported timberframe and done nothing."""
    code = "import sys, timberframe; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", LATER)
def test_import_leaves_out(module: str, loaded: set[str]) -> None:
    assert module not in loaded


def test_messages_are_among_the_names() -> None:
    assert {"GraphDef", "NodeDef", "TensorProto", "saved_model"} <= set(dir(tf))
    assert "SaverDef" in dir(tf.train)


@pytest.mark.parametrize("module", [tf, tf.train])
def test_other_names_are_refused(module: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'GraphDeff'"):
        _ = module.GraphDeff  # type: ignore[attr-defined]  # what is refused


def test_a_message_has_one_class() -> None:
    from timberframe_core.graphdef.messages import GraphDef

    assert tf.GraphDef is GraphDef
    assert isinstance(tf.Graph().as_graph_def(), tf.GraphDef)


def test_saved_model_raises_errors_of_ours() -> None:
    with pytest.raises(tf.errors.OpError, match=r"tf\.saved_model\.\w+: TypeError"):
        tf.saved_model.contains_saved_model(object())
