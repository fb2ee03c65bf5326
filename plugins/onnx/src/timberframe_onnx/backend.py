"""ONNX's interface of backends, by which its own tests judge one: `onnx.backend.test.BackendTest(backend)`.

The module is the backend, as those of others are: ``timberframe_onnx.backend.prepare(model).run(inputs)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.model import Model, load


class TimberframeRep(BackendRep):  # type: ignore[misc] # onnx has no types of its backends
    """A model that has been prepared."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **options: Any) -> tuple[Any, ...]:
        """Returns the outputs for inputs in the model's order, or by name; results are known by place and name.

        Raises InvalidArgumentError for other numbers of inputs than the model has, and for options: there are none.
        """
        _no_options(options)
        if not isinstance(inputs, Mapping):
            given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
            if len(given) > len(self.model.inputs):
                raise InvalidArgumentError(f"{len(given)} inputs are given; the model is {self.model.signature}")
            inputs = {port.name: _array(value) for port, value in zip(self.model.inputs, given, strict=False)}
        found = self.model.run({name: _array(value) for name, value in inputs.items()})
        made: tuple[Any, ...] = namedtupledict("Outputs", list(found))(*found.values())
        return made


def _array(value: Any) -> Any:
    """Returns the array of a tensor's message: element types that NumPy lacks come so."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _no_options(options: Mapping[str, Any]) -> None:
    if options:
        raise InvalidArgumentError(f"options {sorted(options)} are given; there are none")


class TimberframeBackend(Backend):  # type: ignore[misc] # onnx has no types of its backends
    """Prepares and runs models on the devices of Timberframe. Names of devices are ONNX's: CPU, CUDA, CUDA:1."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> TimberframeRep:
        """Returns a model that is ready to run on a device; the errors are those of `timberframe_onnx.load`."""
        _no_options(options)
        return TimberframeRep(load(model, device=_device(device)))

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any
    ) -> tuple[Any, ...]:
        """Returns the outputs of one node of ONNX's newest opset, or of `opset_version`, for arrays in order."""
        opset = options.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = dict(zip((name for name in node.input if name), map(_array, inputs), strict=True))
        ports = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ]
        outputs = [onnx.helper.make_tensor_value_info(name, 1, None) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", ports, outputs)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device, **options).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether there is a device of that name, as "CPU" or "CUDA:1"."""
        kind, _, number = device.partition(":")
        return any(name.endswith(f"{kind}:{number or 0}") for name in _devices())


@cache
def _devices() -> tuple[str, ...]:
    """Returns the names of all devices."""
    with tf.Session() as session:
        return tuple(d.name for d in session.list_devices())


def _device(device: str) -> str:
    kind, _, number = device.partition(":")
    return f"/device:{kind}:{number or 0}"


prepare = TimberframeBackend.prepare
run_node = TimberframeBackend.run_node
run_model = TimberframeBackend.run_model
supports_device = TimberframeBackend.supports_device
is_compatible = TimberframeBackend.is_compatible
