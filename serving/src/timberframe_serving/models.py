"""Files of models become signatures that run: SavedModels, and ONNX where timberframe-onnx is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import timberframe as tf
from timberframe.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY, INIT_SIGNATURE
from timberframe.saved_model.loader import contains_saved_model, load
from timberframe_core.config import SessionConfig
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import FailedPreconditionError, MissingFileError, UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import decode_shape, encode_shape, make_ndarray
from timberframe_serving.repository import ONNX_FILE, Runtime
from timberframe_serving.signatures import PREDICT_METHOD, Port, Signature


@dataclass(frozen=True)
class LoadSettings:
    """How models are loaded. device: as for `tf.device`, "" leaves it to placement. config: the session's settings."""

    device: str = ""
    tags: tuple[str, ...] = ("serve",)
    config: Any = None

    def of(self, runtime: Runtime) -> LoadSettings:
        """Returns those of a model that has some of its own."""
        config = self.config or SessionConfig()
        config = replace(
            config,
            intra_op_parallelism_threads=runtime.intra_op_parallelism_threads or config.intra_op_parallelism_threads,
            inter_op_parallelism_threads=runtime.inter_op_parallelism_threads or config.inter_op_parallelism_threads,
            memory_limit={**config.memory_limit, **runtime.memory_limit},
        )
        return replace(self, device=runtime.device or self.device, config=config)


@dataclass(frozen=True)
class LoadedModel:
    """A model's signatures by name, what closes it, and its platform in the words of the Open Inference Protocol."""

    signatures: dict[str, Signature]
    close: Callable[[], None]
    platform: str


def load_model(folder: Path, settings: LoadSettings) -> LoadedModel:
    """Loads the model of a folder; raises the errors of its reader, and MissingFileError where there is none."""
    if contains_saved_model(folder):
        return _load_saved_model(folder, settings)
    if (folder / ONNX_FILE).is_file():
        return _load_onnx(folder / ONNX_FILE, settings)
    raise MissingFileError(
        f"model '{folder}': has no saved_model.pb, saved_model.pbtxt or {ONNX_FILE}; one is required"
    )


def _placed(graph: tf.Graph, device: str) -> Any:
    return graph.device(device) if device else nullcontext()


def _load_saved_model(folder: Path, settings: LoadSettings) -> LoadedModel:
    graph = tf.Graph()
    session = tf.Session(graph=graph, config=settings.config)
    try:
        with graph.as_default(), _placed(graph, settings.device):
            meta: Any = load(session, settings.tags, folder)
        made = {}
        for name, definition in meta.signature_def.items():
            if name != INIT_SIGNATURE:
                made[name] = _signature(session, name, definition)
        if not made:
            raise FailedPreconditionError(f"model '{folder}': has no signatures; at least one is required to serve it")
    except BaseException:
        session.close()
        raise
    return LoadedModel(made, session.close, "tensorflow_savedmodel")


def _signature(session: tf.Session, name: str, definition: Any) -> Signature:
    inputs, outputs = sorted(definition.inputs.items()), sorted(definition.outputs.items())
    sparse = [key for key, info in (*inputs, *outputs) if info.WhichOneof("encoding") != "name"]
    if sparse:
        refuse = partial(_refuse, f"signature '{name}': {sparse} are sparse tensors; dense ones alone are served")
        return Signature(name, definition.method_name, (), (), refuse, definition)
    call = session.make_callable([info.name for _, info in outputs], [info.name for _, info in inputs])
    defaults = {key: make_ndarray(value) for key, value in definition.defaults.items()}
    return Signature(
        name,
        definition.method_name or PREDICT_METHOD,
        tuple(_port(key, info, defaults.get(key)) for key, info in inputs),
        tuple(_port(key, info) for key, info in outputs),
        call,
        definition,
    )


def _refuse(words: str, *_: Any) -> Any:
    raise UnimplementedError(words)


def _port(key: str, info: Any, default: Any = None) -> Port:
    return Port(key, as_dtype(info.dtype).base_dtype, decode_shape(info.tensor_shape, f"tensor '{key}'"), default)


def _load_onnx(file: Path, settings: LoadSettings) -> LoadedModel:
    try:
        import timberframe_onnx
    except ImportError as error:
        raise UnimplementedError(
            f"model '{file}': timberframe-onnx is not installed; it is required for ONNX"
        ) from error
    graph = tf.Graph()
    try:
        with graph.as_default(), _placed(graph, settings.device):
            made = timberframe_onnx.import_model(file)
        tensors = all(isinstance(v, tf.Tensor) for v in (*made.inputs.values(), *made.outputs.values()))
    except timberframe_onnx.UnsupportedModelError as error:
        if not error.by_shapes:
            raise
        tensors = False
    if tensors:
        session = tf.Session(graph=graph, config=settings.config)
        inputs, outputs = (_ports_of(group) for group in (made.inputs, made.outputs))
        call: Callable[..., Any] = session.make_callable(list(made.outputs.values()), list(made.inputs.values()))
        close: Callable[[], None] = session.close
    else:
        inputs, outputs, call = _by_names(timberframe_onnx.load(file, settings.device or None, settings.config), file)
        close = _nothing
    name = DEFAULT_SERVING_SIGNATURE_DEF_KEY
    signature = Signature(name, PREDICT_METHOD, inputs, outputs, call, _definition(inputs, outputs))
    return LoadedModel({name: signature}, close, "onnx_onnxv1")


def _nothing() -> None:
    """Leaves sessions to the collection of garbage: the model, which has one for each shape, keeps them to itself."""


def _ports_of(tensors: Mapping[str, Any]) -> tuple[Port, ...]:
    return tuple(Port(name, t.dtype.base_dtype, t.static_shape) for name, t in tensors.items())


def _by_names(model: Any, file: Path) -> tuple[tuple[Port, ...], tuple[Port, ...], Callable[..., Any]]:
    """Returns inputs, outputs and a function of a model that makes graphs for shapes, or has types of ONNX alone."""
    lists = [str(p) for p in (*model.inputs, *model.outputs) if p.kind != "tensor"]
    if lists:
        raise UnimplementedError(f"model '{file}': has {lists}; inputs and outputs must be tensors to be served")
    inputs, outputs = (
        tuple(Port(p.name, as_dtype(p.numpy), _sizes(p.sizes())) for p in ports)
        for ports in (model.inputs, model.outputs)
    )
    lock = Lock()  # a model that makes graphs keeps them by shape, and is made for one caller at a time

    def call(*arrays: Any) -> list[Any]:
        with lock:
            found = model.run({p.name: a for p, a in zip(inputs, arrays, strict=True)})
        return [found[p.name] for p in outputs]

    return inputs, outputs, call


def _sizes(sizes: list[int | None] | None) -> tuple[int | None, ...] | None:
    return None if sizes is None else tuple(sizes)


def _definition(inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Any:
    """Returns a SignatureDef of an ONNX model."""
    made = messages.SignatureDef(method_name=PREDICT_METHOD)
    for target, ports in ((made.inputs, inputs), (made.outputs, outputs)):
        for port in ports:
            info = target[port.name]
            info.name, info.dtype = f"{port.name}:0", port.dtype.number
            info.tensor_shape.CopyFrom(encode_shape(port.shape))
    return made
