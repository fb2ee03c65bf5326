"""Asks a server with clients of others, each in an environment of its own: ``python check.py [--folder FOLDER]``.

The models are one that TensorFlow writes, one of ours, and one ONNX file; all answers are compared with those of the
model's writer. FOLDER keeps the environments; pip makes those that are missing. --tensorflow: the site-packages of an
environment that has TensorFlow, so that it is not installed once more.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import timberframe as tf

HERE = Path(__file__).parent
REQUIREMENTS = {
    "tritonclient": ["tritonclient[http,grpc]==2.73.0"],
    "kserve": ["kserve==0.21.0"],
    "ovmsclient": ["ovmsclient==2023.1"],
    "tensorflow_serving_api": ["tensorflow-serving-api==2.21.0"],
}


def environment(folder: Path, name: str, tensorflow: str | None) -> Path:
    """Returns the interpreter of a client's environment, which is made where it is missing."""
    python = folder / name / "bin" / "python"
    if not (folder / name / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        flags = ["--quiet", "--disable-pip-version-check"]
        if name == "tensorflow_serving_api" and tensorflow is not None:
            (site,) = (folder / name).glob("lib/python*/site-packages")
            (site / "tensorflow.pth").write_text(tensorflow + "\n")
            flags.append("--no-deps")
        subprocess.run([python, "-m", "pip", "install", *flags, *REQUIREMENTS[name]], check=True)
        (folder / name / "made").touch()
    return python


def write_ours(folder: Path, x: Any) -> Any:
    """Saves a model and returns what it answers."""
    random = np.random.default_rng(3)
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.float32, [None, 4], name="x")
        first = tf.get_variable("first", initializer=random.normal(size=(4, 8)).astype(np.float32))
        second = tf.get_variable("second", initializer=random.normal(size=(8, 3)).astype(np.float32))
        y = tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(given, first)), second))
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(folder / "1"), {"x": given}, {"y": y})
        a, b = session.run([first, second])
    hidden = np.maximum(x @ a, 0) @ b
    powers = np.exp(hidden - hidden.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def write_onnx(folder: Path, x: Any) -> Any:
    """Writes an ONNX model and returns what it answers."""
    weights = np.random.default_rng(4).normal(size=(4, 3)).astype(np.float32)
    info = onnx.helper.make_tensor_value_info
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["h"]), onnx.helper.make_node("Relu", ["h"], ["y"])]
    ports = [info("x", onnx.TensorProto.FLOAT, ["n", 4])], [info("y", onnx.TensorProto.FLOAT, ["n", 3])]
    graph = onnx.helper.make_graph(nodes, "g", *ports, [numpy_helper.from_array(weights, "w")])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    (folder / "1").mkdir(parents=True)
    onnx.save(made, folder / "1" / "model.onnx")
    return np.maximum(x @ weights, 0)


def models(folder: Path, with_tensorflow: Path) -> Path:
    """Writes all models, and a file of what they answer, whose path is returned."""
    subprocess.run([with_tensorflow, HERE / "write_tensorflow.py", folder / "tensorflow"], check=True)
    x = np.random.default_rng(5).normal(size=(5, 4)).astype(np.float32)
    expected = {
        "tensorflow": json.loads((folder / "tensorflow" / "expected.json").read_text()),
        "ours": {"x": x.tolist(), "y": write_ours(folder / "ours", x).tolist()},
        "onnx": {"x": x.tolist(), "y": write_onnx(folder / "onnx", x).tolist()},
    }
    (folder / "expected").write_text(json.dumps(expected))
    return folder / "expected"


def free_port() -> int:
    """Returns a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def await_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Waits until a server is ready."""
    end = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5)
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("the server does not become ready")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "timberframe-serving-clients")
    parser.add_argument("--tensorflow")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    pythons = {name: environment(given.folder, name, given.tensorflow) for name in REQUIREMENTS}
    pythons["curl"] = Path(sys.executable)
    with tempfile.TemporaryDirectory() as temporary:
        expected = models(Path(temporary), pythons["tensorflow_serving_api"])
        http, rpc = free_port(), free_port()
        flags = [f"--model_repository={temporary}", f"--rest_api_port={http}", f"--port={rpc}"]
        command = [sys.executable, "-m", "timberframe_serving", *flags, "--host=127.0.0.1", "--allow_model_control"]
        server = subprocess.Popen(command)
        try:
            await_ready(server, http)
            failed = [
                n
                for n, p in pythons.items()
                if subprocess.run([p, HERE / f"with_{n}.py", str(http), str(rpc), expected]).returncode
            ]
        finally:
            server.terminate()
        if server.wait(30) or failed:
            raise SystemExit(f"failed: {failed or 'the end of the server'}")


if __name__ == "__main__":
    main()
