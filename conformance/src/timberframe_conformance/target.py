"""The device under test, and what the suites need to know about it."""

from __future__ import annotations

import functools
import gc
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import timberframe as tf
from timberframe_conformance.case import Types
from timberframe_conformance.cases.types import as_attrs, attr_value
from timberframe_conformance.isolation.asking import asked, question_key, why_unasked
from timberframe_conformance.isolation.loading import heed_exclusions, loading_over
from timberframe_conformance.kernels_used import Lookups
from timberframe_conformance.names import no_choice, read_name, uses_choice
from timberframe_conformance.options import Options
from timberframe_conformance.profile import Profile, load_profile
from timberframe_core.dtypes import BY_NAME
from timberframe_core.errors import OpError
from timberframe_core.failures import describe_failure
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin import loader
from timberframe_core.plugin.contracts import UNKNOWN_RANK, AllocatorStatistics, Device, KernelNode, Value
from timberframe_core.plugin.nodes import UNIT_KERNELS
from timberframe_core.runtime.devices import UnknownDeviceTypeError, devices_for
from timberframe_core.runtime.targets import find_target, target_schemes
from timberframe_sdk import register_plugin, register_target
from timberframe_sdk.testing import process_target, reference_device

_COPIED = frozenset({*UNIT_KERNELS, "PlaceholderWithDefault"})
"""Ops that a device runs with its own copy."""


def needs_kernel(op: OpDef) -> bool:
    """Returns whether a device needs a kernel for the op, or for its `update_op`; the core
    carries out the others on any.
    """
    return bool(op.update_op) or not (op.role or op.shape_only or op.name in _COPIED)


REFERENCE, PROCESSES = "reference", "process"


class NoSuchDeviceError(LookupError):
    """The device to test does not exist; the message says which do, and why this one does not."""


class Target:
    """A device under test. `name` is what the user typed, `spec` its name in graphs, `device` the object.

    url: the target of the sessions that have it. settings: the options that the user gave it.
    """

    def __init__(
        self,
        name: str,
        device: Device,
        profile: Profile | None = None,
        config: Mapping[str, Any] | None = None,
        url: str = "",
        settings: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.name = name
        self.settings = tuple(settings)
        self.url = url
        self.config = dict(config or {})
        self.device = device
        self.spec = device.spec
        self.profile = profile or Profile()
        self.lookups = Lookups(device)
        self.broken: dict[tuple[str, Types], str] = {}
        """What the device raised when it was asked whether it takes an op in these dtypes."""
        self._supports: dict[tuple[str, Types], str | None] = {}

    def session(self, graph: Any, **config: Any) -> Any:
        """Returns a session on a graph; keyword arguments are SessionConfig's."""
        return tf.Session(self.url, graph=graph, config=tf.SessionConfig(**{**self.config, **config}))

    @property
    def options(self) -> Options:
        """The options of a run that has this device, with its profile."""
        return Options(self.name, profile=self.profile.path, settings=self.settings)

    def passes(self) -> list[str]:
        """Returns the names of the passes that its sessions have."""
        plugins = [p.name for p in loader.registry.load(self.config.get("plugins"))]
        return [p.name for p in loader.registry.passes.selected(plugins, {})]

    def reset(self) -> None:
        """Drops the variables that earlier sessions left in the target's processes."""
        if self.url:
            tf.Session.reset(self.url)

    def supports(self, op: OpDef, types: Types) -> str | None:
        """Returns None if the device has a kernel for an op in these dtypes, else why not."""
        if not needs_kernel(op):
            return None if self.holds(op, types) else self._absent_dtype(op, types)
        if op.update_op:
            return self.supports(registry.get(op.update_op), tuple(("T", dtype) for _, dtype in types))
        if not self.holds(op, types):
            return self._absent_dtype(op, types)
        key = op.name, types
        if key not in self._supports:
            self._supports[key] = self._answer(op, types)
        return self._supports[key]

    def _answer(self, op: OpDef, types: Types) -> str | None:
        """Returns None if the device takes a node of the op with the attrs of any sample, else
        why not that of the first.
        """
        first = None
        for chosen in _sample_attrs(op.name):
            answer = self.declines(op, types, chosen)
            if answer is None:
                return None
            first = first or answer
        return first

    def declines(self, op: OpDef, types: Types, attrs: Mapping[str, Any]) -> str | None:
        """Returns why the device takes no node of the op with these attrs, whatever the
        shapes; None if it may take one.
        """
        key = question_key(op.name, [dtype for _, dtype in types])
        refused = why_unasked(op.name, key)
        if refused is not None:
            self.broken[op.name, types] = refused
            return refused
        try:
            with self.asked(op, types):
                answer = self.device.supports(probe(self.device, op, types, attrs))
        except Exception as e:  # whatever a plugin raises costs its kernel alone
            answer = self.broken[op.name, types] = _raised(self.device, e)
        return answer if isinstance(answer, str) else None

    def asked(self, op: OpDef, types: Types) -> AbstractContextManager[None]:
        """Within the block the device is asked about an op: it has a time limit, where this process is watched."""
        return asked(question_key(op.name, [dtype for _, dtype in types]))

    def holds(self, op: OpDef, types: Types) -> bool:
        """Returns whether the device declares the dtypes of the tensors that an op moves: `breadth` asks for no others.

        What the op is planned by, such as axes, stays on the host.
        """
        return not self._lacking(op, types)

    def _lacking(self, op: OpDef, types: Types) -> list[str]:
        """Returns the dtypes of moved tensors that the device does not declare; quantized ones are their integers."""
        held = self.device.attributes.dtypes
        planned = {a.type_attr for a in op.inputs if a.name in op.shape_inputs}
        moved = {a.type_attr for a in (*op.inputs, *op.outputs) if a.name not in op.shape_inputs}
        return [
            t
            for name, t in types
            if held and t not in held and not (BY_NAME[t].is_quantized and BY_NAME[t].numpy.name in held)
            and (name in moved or name not in planned)
        ]  # fmt: skip

    def _absent_dtype(self, op: OpDef, types: Types) -> str:
        held = ", ".join(self.device.attributes.dtypes)
        return f"the device holds {held} alone, and no {', '.join(dict.fromkeys(self._lacking(op, types)))}"

    def forget(self) -> None:
        """Asks the device again what it supports, when its kernels have changed."""
        self._supports.clear()
        self.broken.clear()

    def statistics(self) -> AllocatorStatistics:
        """Returns the statistics of the device's allocator."""
        return self.device.allocator.statistics()

    def settled(self, before: AllocatorStatistics) -> AllocatorStatistics:
        """Returns the allocator's statistics after garbage collection, which is slow and
        therefore done only if it matters.
        """
        now = self.statistics()
        if now.live > before.live or now.used > before.used:
            gc.collect()
            now = self.statistics()
        return now


def probe(device: Device, op: OpDef, types: Types, chosen: Mapping[str, Any]) -> KernelNode:
    """Returns a node of the op in these dtypes, without shapes, as the placer asks about it.

    chosen: the attrs that are set.
    """
    attrs = {n: a.default for n, a in op.attrs.items() if not a.required}
    attrs |= {n: attr_value(op.attrs[n].kind, v) for n, v in chosen.items()} | as_attrs(types)
    held = attrs.get("dtype", attrs.get("T")) if op.reads or op.updates else None  # in place of handles

    def value(i: int, a: Any) -> Value:
        if held is not None and a.dtype is not None and a.dtype.name == "resource":
            return Value(i, held.numpy, UNKNOWN_RANK, "input")
        return Value(i, _numpy(a, types), UNKNOWN_RANK, "input")

    inputs = [value(i, a) for i, a in enumerate(op.inputs)]
    outputs = [Value(len(inputs) + i, _numpy(a, types), UNKNOWN_RANK) for i, a in enumerate(op.outputs)]
    return KernelNode(op.name, "probe", attrs, inputs, outputs, device, placing=True)


@functools.lru_cache(maxsize=4096)
def _sample_attrs(op: str) -> Sequence[Mapping[str, Any]]:
    """Returns the attrs that the op's samples set, each combination once."""
    found: list[Mapping[str, Any]] = []
    for sample in registry.get(op).samples():
        if sample.attrs not in found:
            found.append(sample.attrs)
    return found or [{}]


def _raised(device: Device, e: Exception) -> str:
    """Returns what a question to the device raised; the registry of kernels names plugin and kernel itself."""
    if isinstance(e, OpError):
        return str(e)
    frame = traceback.extract_tb(e.__traceback__)[-1]
    kind = type(device)
    where = f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
    return f"supports of {kind.__module__}.{kind.__qualname__} raised {type(e).__name__}: {e} ({where})"


def _numpy(arg: Any, types: Types) -> Any:
    if arg.dtype is not None:
        return arg.dtype.numpy
    found = as_attrs(types).get(arg.type_attr or "")
    return (found or tf.float32).numpy


def open_target(options: Options) -> Target:
    """Returns the device that the options name, with its profile and, where one is asked for, a
    known bug in its kernels.

    The SDK's reference device is there without a plugin, under the name `reference`, and its devices in other processes
    under `process:<number of processes>`. `names.py` has the rule of names.
    Raises NoSuchDeviceError, which says what there is and why the named one is not; and ProfileError.
    """
    heed_exclusions()
    try:
        return _open(options)
    finally:
        loading_over()


def _open(options: Options) -> Target:
    profile = load_profile(options.profile_path)
    remote = _in_target(options.device, options.settings)
    if remote is not None:
        return Target(options.device, remote, profile, url=options.device)
    named = read_name(options.device)
    config = named.config(options.settings)
    if named.type.lower() == REFERENCE and REFERENCE not in loader.registry.plugins:
        register_plugin(REFERENCE, reference_device)
    try:
        devices = devices_for(tf.SessionConfig(**config))
    except UnknownDeviceTypeError:
        failures = loader.registry.failures()  # before the plugin is asked again, without the options
        present = devices_for(tf.SessionConfig())
        raise NoSuchDeviceError(_absence(options.device, named.type.lower(), present, failures)) from None
    found = next((d for d in devices if d.spec == named.spec), None)
    if found is None:
        raise NoSuchDeviceError(_absence(options.device, named.type.lower(), devices, loader.registry.failures()))
    if named.choice and not uses_choice(found):
        raise NoSuchDeviceError(no_choice(options.device, named))
    return Target(options.device, found, profile, config, settings=options.settings)


def _in_target(url: str, settings: Sequence[tuple[str, str]]) -> Device | None:
    """Returns the first device of a target, None where the name is no URL of one.

    settings: options, of which it takes none.
    """
    if url.partition(":")[0] == PROCESSES:
        register_target(PROCESSES, process_target)
    try:
        kind, address = find_target(url)
    except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError):
        return None
    if settings:
        names = ", ".join(name for name, _ in settings)
        raise NoSuchDeviceError(f"device '{url}' is of a target; options {names} are for plugins alone")
    return kind.open(address, tf.SessionConfig()).devices()[0]


def _absence(name: str, kind: str, devices: list[Device], failures: Mapping[str, BaseException]) -> str:
    """Returns why there is no such device, and what there is. failures: of plugins, when it was asked for."""
    known = ", ".join(d.spec for d in devices) or "none"
    reasons = [f"plugin '{plugin}' failed: {describe_failure(e)}" for plugin, e in failures.items()]
    if kind.lower() not in loader.registry.plugins and kind.upper() not in {d.type for d in devices}:
        installed = ", ".join(loader.registry.plugins) or "none"
        reasons.insert(0, f"no installed plugin is called '{kind.lower()}' (installed: {installed})")
    plugin = loader.registry.plugins.get(kind.lower())
    if plugin is not None and plugin not in loader.selected(loader.registry.plugins, None):
        reasons.insert(0, f"{loader.SELECTION_VARIABLE} leaves out plugin '{plugin.name}'")
    reasons = reasons or ["no plugin offers it"]
    return (
        f"device '{name}' does not exist; devices: {known}; {'; '.join(reasons)}; TYPE, TYPE:INDEX, TYPE:CHOICE of a "
        f"plugin's hardware, or the URL of a target is required ({', '.join(f'{s}:' for s in target_schemes())})"
    )
