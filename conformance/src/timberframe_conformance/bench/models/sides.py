"""The systems that run a network: the device through our sessions, TensorFlow, and ONNX Runtime.

TensorFlow imports the GraphDef that we export; ONNX Runtime gets what tf2onnx makes of the same.
"""

from __future__ import annotations

import importlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe as tf
from timberframe_conformance.bench.models.catalogue import Model, build
from timberframe_conformance.bench.peers import absent_modules, find_peers

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

DEVICE, TENSORFLOW, ONNXRUNTIME = "device", "tensorflow", "onnxruntime"
DEVICE_VARIABLES, TENSORFLOW_VARIABLES = "device, variables", "tensorflow, variables"
PEERS = (TENSORFLOW, ONNXRUNTIME)
NEEDED = {TENSORFLOW: (TENSORFLOW,), ONNXRUNTIME: (ONNXRUNTIME, "tf2onnx", TENSORFLOW)}
OPSET = 18
"""Of ONNX; tf2onnx writes nothing newer."""
COMPARED_STEPS = 3


@dataclass(frozen=True)
class Side:
    """One system with a network. call: a run, as the measurement repeats it. results: what is compared.

    prepare: done before each sample, untimed.
    """

    name: str
    call: Callable[[], Any]
    results: Callable[[], list[np.ndarray]]
    prepare: Callable[[], Any] = lambda: None


def installed(peers: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns those peers that can be imported, and why the others are left out."""
    return find_peers(peers, PEERS, "runs no models", lambda peer: absent_modules(NEEDED[peer]))


class Sides:
    """Opens sides, each with the given number of threads, and closes them all at the end of a `with` block."""

    def __init__(self, target: Target, threads: int) -> None:
        self.target = target
        self.threads = threads
        self._open = ExitStack()

    def __enter__(self) -> Sides:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def inference(self, name: str, batch: int, peers: Sequence[str]) -> Iterator[tuple[str, Callable[[], Side]]]:
        """By name what opens each side of a network; a side that cannot be opened raises then."""
        frozen = build(name, batch, device=self.target.spec)
        free = build(name, batch, variables=True, device=self.target.spec)
        yield DEVICE, lambda: self._ours(frozen)
        yield DEVICE_VARIABLES, lambda: self._saved(free)
        if TENSORFLOW in peers:
            yield TENSORFLOW, lambda: self._tensorflow(frozen, TENSORFLOW)
            yield TENSORFLOW_VARIABLES, lambda: self._tensorflow(free, TENSORFLOW_VARIABLES)
        if ONNXRUNTIME in peers:
            yield ONNXRUNTIME, lambda: self._onnxruntime(frozen)

    def training(self, model: Model, peers: Sequence[str]) -> Iterator[tuple[str, Callable[[], Side]]]:
        """Yields the same for a training step."""
        yield DEVICE, lambda: _trainer(DEVICE, self._session(model.graph), model)
        if TENSORFLOW in peers:
            yield TENSORFLOW, lambda: self._tensorflow(model, TENSORFLOW)

    def device_call(self, model: Model) -> Callable[..., Any]:
        """Returns a run of the network, or a training step, on the device; it takes the keyword
        arguments of `Session.run`.
        """
        if model.step is None:
            return self._ours(model).call
        side = _trainer(DEVICE, self._session(model.graph), model)
        side.prepare()
        return side.call

    def _session(self, graph: tf.Graph) -> Any:
        session = self.target.session(
            graph,
            intra_op_parallelism_threads=self.threads,
            inter_op_parallelism_threads=self.threads,
            allow_soft_placement=True,
        )
        return self._open.enter_context(session)

    def _ours(self, model: Model) -> Side:
        return _runner(DEVICE, self._session(model.graph), model.fetches, dict(model.feeds))

    def _saved(self, model: Model) -> Side:
        """Returns the network as a SavedModel, written and loaded again."""
        inputs = {t.op.name: t for t in model.feeds}
        outputs = {t.op.name: t for t in model.fetches}
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model")
            with self.target.session(model.graph, allow_soft_placement=True) as session:
                session.run(model.initialize)
                tf.saved_model.simple_save(session, path, inputs, outputs)
            loaded = self._session(tf.Graph())
            tf.saved_model.load(loaded, [tf.saved_model.SERVING], path)
        fetches = [loaded.graph.get_tensor_by_name(t.name) for t in model.fetches]
        feeds = {loaded.graph.get_tensor_by_name(t.name): v for t, v in model.feeds.items()}
        return _runner(DEVICE_VARIABLES, loaded, fetches, feeds)

    def _tensorflow(self, model: Model, name: str) -> Side:
        tf1 = import_tensorflow()
        with tf1.Graph().as_default() as graph:
            tf1.import_graph_def(_peers_graph(model), name="")
        threads = {"intra_op_parallelism_threads": self.threads, "inter_op_parallelism_threads": self.threads}
        session = self._open.enter_context(tf1.Session(graph=graph, config=tf1.ConfigProto(**threads)))
        if model.step is not None:
            return _trainer(name, session, model, by_name=True)
        if model.initialize is not None:
            session.run(model.initialize.name)
        return _runner(name, session, [t.name for t in model.fetches], {t.name: v for t, v in model.feeds.items()})

    def _onnxruntime(self, model: Model) -> Side:
        onnxruntime: Any = importlib.import_module("onnxruntime")  # an optional peer, like those below
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(as_onnx(model), options, providers=["CPUExecutionProvider"])
        outputs = [t.name for t in model.fetches]
        feeds = {t.name: np.ascontiguousarray(v) for t, v in model.feeds.items()}
        call = partial(session.run, outputs, feeds)
        return Side(ONNXRUNTIME, call, call)


def _runner(name: str, session: Any, fetches: Any, feeds: dict[Any, np.ndarray]) -> Side:
    call = partial(session.run, fetches, feeds)
    return Side(name, call, call)


def _trainer(name: str, session: Any, model: Model, by_name: bool = False) -> Side:
    """Compared are losses and gradients before each of the first steps; each sample begins with the first values."""

    def known(x: Any) -> Any:
        return x.name if by_name else x

    feeds = {known(t): v for t, v in model.feeds.items()}
    fetches = [*map(known, model.fetches)]
    step, initialize = known(model.step), partial(session.run, known(model.initialize))

    def results() -> list[np.ndarray]:
        initialize()
        found = [session.run([*fetches, step], feeds)[:-1] for _ in range(COMPARED_STEPS)]
        return [np.array(values) for values in zip(*found, strict=True)]

    return Side(name, partial(session.run, step, feeds), results, initialize)


def _peers_graph(model: Model) -> Any:
    """Returns the exported GraphDef as TensorFlow's message, without our devices' names."""
    message = import_tensorflow().GraphDef.FromString(model.graph.as_graph_def().SerializeToString())
    for node in [*message.node, *(node for f in message.library.function for node in f.node_def)]:
        node.device = ""
    return message


def as_onnx(model: Model) -> bytes:
    """Returns the network as tf2onnx translates it."""
    import_tensorflow()
    tf2onnx: Any = importlib.import_module("tf2onnx")
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    inputs, outputs = [t.name for t in model.feeds], [t.name for t in model.fetches]
    with _silent():
        made, _ = tf2onnx.convert.from_graph_def(
            _peers_graph(model), input_names=inputs, output_names=outputs, opset=OPSET
        )
    return bytes(made.SerializeToString())


def import_tensorflow() -> Any:
    """TensorFlow 1's API, imported without the messages that it prints when it starts."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silent():
        tf1: Any = importlib.import_module("tensorflow.compat.v1")
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    return tf1


@contextmanager
def _silent() -> Iterator[None]:
    """Without what TensorFlow's C++ code writes to the standard error stream, whatever its level of logging."""
    saved = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
