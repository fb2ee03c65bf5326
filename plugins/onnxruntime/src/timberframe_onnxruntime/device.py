"""The device: a cluster becomes one session of ONNX Runtime, on one execution provider."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from timberframe_core.errors import FailedPreconditionError
from timberframe_onnxruntime.checks import BeginCheck, IndexCheck, value_checks
from timberframe_onnxruntime.model import DTYPES, ClusterModel, refusal, weights_of, write_model
from timberframe_onnxruntime.providers import Provider, find_provider
from timberframe_onnxruntime.script import write_script
from timberframe_onnxruntime.sessions import (
    SWITCHES,
    NotTakenError,
    assigned_elsewhere,
    compiled_model,
    error_of,
    open_compiled,
    open_session,
    told,
    versioned,
)
from timberframe_onnxruntime.settings import TYPE, Settings, settings_of
from timberframe_sdk import (
    HARDWARE,
    Allocator,
    ClusterFunction,
    CompilerDevice,
    DeviceAttributes,
    Judged,
    KernelNode,
    OpError,
    Program,
    device_count,
    memory_limit,
    module_of_file,
    note_fallback,
    program_cache,
)
from timberframe_sdk.recording import Recorder, judged_run, recorded_draws, recorded_runs

MEMORY = 1 << 32
"""Bytes that a device may use where the session sets no limit: ONNX Runtime does not say what a provider has."""
BAKED_SESSIONS = 4
"""Sessions that a program keeps whose weights are part of their models; other weights take the place of the oldest."""


Run = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


class HostAllocator(Allocator):
    """Keeps the accounts: arrays are NumPy's, and ONNX Runtime copies them to where the provider computes."""

    def raw(self, nbytes: int) -> Any:
        """Returns memory of the host that begins at a multiple of `alignment`."""
        whole = np.empty(nbytes + self.alignment, np.uint8)
        first = -whole.ctypes.data % self.alignment
        return whole[first : first + nbytes]


class OrtDevice(CompilerDevice):
    """One provider of ONNX Runtime. A cluster is written as ONNX and compiled by a session that has no other."""

    type, priority = TYPE, 5

    def __init__(self, index: int, provider: Provider, settings: Settings, limit: int | None = None) -> None:
        super().__init__(index)
        self.provider, self.settings = provider, settings
        self.recorder: Recorder | None = None
        self.inline_bytes = None if settings.weights == "initializers" else 1024
        self.allocator = HostAllocator(limit)
        self.attributes = DeviceAttributes(
            memory=limit or MEMORY,
            vendor=provider.vendor or "ONNX Runtime",
            model=provider.name,
            driver=" ".join(filter(None, (provider.version, f"onnxruntime {onnxruntime.__version__}"))),
            dtypes=DTYPES,
            details={
                HARDWARE: settings.hardware,
                "opset": settings.opset, "weights": settings.weights, "optimization": settings.optimization,
                "fallback": settings.fallback, "library": provider.library, "onnx": onnx.__version__,
                "threads": settings.threads, **SWITCHES, **settings.provider_options,
            },
            slow_compile=True,
            modules=("onnxruntime", "onnx", *filter(None, [module_of_file(provider.library)])),
        )  # fmt: skip

    def supports(self, node: KernelNode) -> str | None:
        """See Device: what the provider itself refuses shows when a cluster is compiled."""
        return refusal(node)

    def build(self, function: ClusterFunction) -> Program:
        """Returns a session as a program; NotTakenError where the provider refuses it.

        What the provider compiled is kept on disk where that is wanted, and the provider makes nodes `EPContext` of it.
        """
        model, checks = write_model(function, self.settings.opset), value_checks(function)
        if self.settings.weights == "initializers" and (weights := weights_of(model.proto)):
            return _program(checks, BakedProgram(self, model, weights).run)
        text = None
        if self.cache is not None:
            text = compiled_model(model.proto.SerializeToString(), self.provider, self.settings)
        if text is None:
            return _program(checks, ModelProgram(self, model, model.proto, model.inputs).run)
        kept = _digest(model) + text
        return _program(checks, ModelProgram(self, model, model.proto, model.inputs, text).run, lambda: kept)

    def load(self, function: ClusterFunction, data: bytes) -> Program:
        """See CompilerDevice; FailedPreconditionError where the cluster is written as another model now."""
        model = write_model(function, self.settings.opset)
        digest = _digest(model)
        if not data.startswith(digest):
            raise FailedPreconditionError(f"device {self.spec}: it was made of another model; the same is required")
        text = data[len(digest) :]
        return _program(
            value_checks(function), ModelProgram(self, model, model.proto, model.inputs, text).run, lambda: data
        )

    def identity(self) -> list[str]:
        """Returns what programs depend on besides their clusters."""
        library = self.provider.library
        built = str(Path(library).stat().st_mtime_ns) if library else ""
        settings = [repr(sorted(self.attributes.details.items())), str(self.settings.device_index)]
        return [self.provider.name, self.attributes.driver, built, *settings]

    def upload(self, x: np.ndarray) -> np.ndarray:
        """Returns a copy; ONNX Runtime reads arrays whose elements are in order."""
        return np.array(x, order="C")

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        """Returns a copy: arrays never change, and the caller may write to what it gets."""
        return np.array(a)

    def record(self, folder: str) -> bool:
        """See Device."""
        self.recorder = Recorder(Path(folder))
        return True

    def script(self, folder: str, title: str, judged: Sequence[Judged]) -> str:
        """Returns a program of onnxruntime, onnx and numpy; see Device."""
        runs = recorded_runs(Path(folder))
        if not runs:
            return ""
        draws = recorded_draws(Path(folder))
        return write_script(*judged_run(runs, judged), title, self.provider, self.settings, draws)

    def error(self, e: Exception) -> OpError:
        """See CompilerDevice."""
        found = error_of(e, self.spec)
        return found if isinstance(found, OpError) else super().error(e)


class ModelProgram:
    """A session for a model. fed: the names of its inputs, in the order of the arrays that `run` gets.

    compiled: the model that the provider made of it, if any.
    """

    def __init__(
        self,
        device: OrtDevice,
        model: ClusterModel,
        proto: onnx.ModelProto,
        fed: Sequence[str],
        compiled: bytes | None = None,
    ) -> None:
        self.device, self.text = device, proto.SerializeToString()
        self.model, self.fed, self.outputs = model, fed, list(model.outputs)
        if device.recorder is not None:  # the session may end the process
            device.recorder.begin(self.text, {i.name: _zeros(i.type.tensor_type) for i in proto.graph.input})
        if compiled is None:
            self.session = open_session(model, proto, device.provider, device.settings)
        else:
            self.session = open_compiled(compiled, device.provider, device.settings)
        self.elsewhere = [(model.op_of(node), by) for _, by, node in assigned_elsewhere(self.session, device.provider)]

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the outputs; what other providers have computed of them is noted."""
        feeds, recorder = dict(zip(self.fed, arrays, strict=True)), self.device.recorder
        number = None if recorder is None else recorder.begin(self.text, feeds)
        try:
            made = self.session.run(self.outputs, feeds)
        except Exception as e:
            self._refuse_any_values(arrays, e)
            raise
        if recorder is not None and number is not None:
            recorder.end(number, dict(zip(self.outputs, made, strict=True)))
        for op, provider in self.elsewhere:
            note_fallback(TYPE, op, provider)
        return [np.asarray(x) for x in made]

    def _refuse_any_values(self, arrays: Sequence[np.ndarray], error: Exception) -> None:
        """Raises NotTakenError where zeros fail, too: the provider then refuses the shapes, which no data can mend."""
        try:
            self.session.run(self.outputs, {n: np.zeros_like(a) for n, a in zip(self.fed, arrays, strict=True)})
        except type(error):
            names = ", ".join(
                dict.fromkeys(versioned(n.op_type, self.model.proto) for n in self.model.proto.graph.node)
            )
            raise NotTakenError(f"{names} fails for these shapes, whatever the values: {told(error)}") from error
        except Exception:  # another failure than the first says nothing about it
            return


class BakedProgram:
    """A program whose weights are part of its model: it has a session for each set of weights."""

    def __init__(self, device: OrtDevice, model: ClusterModel, weights: Sequence[str]) -> None:
        self.device, self.model, self.weights = device, model, set(weights)
        self.fed = [n for n in model.inputs if n not in self.weights]
        self.programs: dict[tuple[bytes, ...], ModelProgram] = {}
        # Whether the provider takes it shows now, and not when the first weights come.
        zeros = {i.name: _zeros(i.type.tensor_type) for i in model.proto.graph.input}
        ModelProgram(device, model, self._with_initializers(zeros), self.fed)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns what the session of these weights gives."""
        given = dict(zip(self.model.inputs, arrays, strict=True))
        key = tuple(given[n].tobytes() for n in self.model.inputs if n in self.weights)
        program = self.programs.get(key)
        if program is None:
            program = ModelProgram(self.device, self.model, self._with_initializers(given), self.fed)
            while len(self.programs) >= BAKED_SESSIONS:
                self.programs.pop(next(iter(self.programs)), None)
            self.programs[key] = program
        return program.run([given[n] for n in self.fed])

    def _with_initializers(self, given: Mapping[str, np.ndarray]) -> onnx.ModelProto:
        proto = onnx.ModelProto()
        proto.CopyFrom(self.model.proto)
        kept = [i for i in proto.graph.input if i.name not in self.weights]
        del proto.graph.input[:]
        proto.graph.input.extend(kept)
        proto.graph.initializer.extend(onnx.numpy_helper.from_array(given[n], n) for n in sorted(self.weights))
        return proto


def _program(checks: Sequence[IndexCheck | BeginCheck], run: Run, save: Callable[[], bytes] | None = None) -> Program:
    """Returns a program whose parameters are looked at before it runs, where its nodes demand that."""
    return Program(partial(_checked, checks, run) if checks else run, save=save)


def _digest(model: ClusterModel) -> bytes:
    """Returns what identifies a model: another version of what writes them may write another one of a cluster."""
    return hashlib.sha256(model.proto.SerializeToString(deterministic=True)).digest()


def _checked(checks: Sequence[IndexCheck | BeginCheck], run: Run, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Returns what a program gives whose parameters are as its nodes demand."""
    for check in checks:
        check.check(arrays[check.parameter])
    return run(arrays)


def _zeros(given: onnx.TypeProto.Tensor) -> np.ndarray:
    """Returns an array of an input's dtype and shape, all of whose sizes are known."""
    return np.zeros([d.dim_value for d in given.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(given.elem_type))


def devices(config: Mapping[str, Any]) -> list[OrtDevice]:
    """Returns the devices of a session's settings: of one provider, each with a session of its own for each cluster."""
    settings = settings_of(config)
    provider = find_provider(settings.hardware, settings.library, settings.device_index)
    limit = memory_limit(config, TYPE, MEMORY)
    made = [OrtDevice(i, provider, settings, limit) for i in range(device_count(config, TYPE, 1))]
    for device in made:
        device.cache = program_cache(config, "ort", device.identity())
    return made
