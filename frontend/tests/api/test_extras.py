"""What needs a package that an extra brings says which extra, where the package is not installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf


def install(extra: str) -> str:
    """Returns a pattern for the end of an error that names this extra."""
    return re.escape(f" is not installed; `pip install 'timberframe[{extra}]'` installs what is required")


def absent(monkeypatch: pytest.MonkeyPatch, packages: Sequence[str]) -> None:
    """Makes imports of packages fail as where they are not installed."""
    for name in packages:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("name", ["flags", "app", "test"])
def test_a_module_of_abseil_names_its_extra(name: str) -> None:
    program = f"import sys; sys.modules['absl'] = None\nimport timberframe as tf\ntf.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    wanted = install("absl")
    assert re.search(rf"MissingPackageError: tf\.(flags|app|test): package absl{wanted}$", done.stderr.strip())


def test_a_picture_names_node_and_extra_and_the_session_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch, ["PIL"])
    with tf.Graph().as_default():
        picture = tf.image.decode_png(tf.placeholder(tf.string, [], name="file"), name="picture")
        file = picture.op.inputs[0]
        with tf.Session() as session:
            wanted = f"DecodePng 'picture': package PIL{install('images')}"
            with pytest.raises(tf.errors.UnavailableError, match=wanted):
                session.run(picture, {file: b"x"})
            assert session.run(file, {file: b"x"}) == b"x"


def test_a_safetensors_file_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "model.safetensors"
    save_file({"x": np.ones(3, np.float32)}, path)
    absent(monkeypatch, ["safetensors"])
    with pytest.raises(ModuleNotFoundError, match=f"model.safetensors': package safetensors{install('safetensors')}"):
        tf.train.load_checkpoint(str(path))


def test_an_optimizer_of_scipy_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch, ["scipy", "scipy.optimize"])
    with tf.Graph().as_default():
        loss = tf.square(tf.Variable(1.0))
        optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            with pytest.raises(tf.errors.UnavailableError, match=f"package scipy{install('scipy')}"):
                optimizer.minimize(session)
