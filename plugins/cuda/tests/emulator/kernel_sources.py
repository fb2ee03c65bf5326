"""Every source that the SDK's accelerator kernels are built from, found by building them for samples of each op."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from timberframe_accelerator import Function, Multiplication, unfolding
from timberframe_accelerator.kernels import accelerator_kernels
from timberframe_conformance import drive
from timberframe_conformance.case import Types, UnsupportedError
from timberframe_conformance.cases.trials import Trial, trials
from timberframe_conformance.cluster import one_node
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.target import Target
from timberframe_core.dtypes import resource
from timberframe_core.errors import OpError
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_cuda.precompile import Compilation, CompilingDevice
from timberframe_sdk import Device, KernelDef, hookimpl
from timberframe_sdk.launching import build_kernel


class RecordingDevice(CompilingDevice):
    """Keeps the sources that it is asked to build, each with the node that asked first, and builds nothing."""

    type = "RECORDING"
    library = False  # whether it has one for products

    def __init__(self) -> None:
        super().__init__(cast(Compilation, self))
        self.sources: dict[str, str] = {}
        self.asking = ""
        self.failures: dict[str, str] = {}  # by op, of those that were never built

    def add(self, source: str) -> None:
        """Keeps a source, where a compilation would compile it."""
        self.sources.setdefault(source, self.asking)

    def multiplier(self, wanted: Multiplication) -> Function | None:
        return super().multiplier(wanted) if self.library else None


class RecordingPlugin:
    """The plugin of one such device."""

    def __init__(self) -> None:
        self.device = RecordingDevice()

    @hookimpl
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:
        return cast(list[Device], [self.device])  # a protocol's attributes are invariant

    @hookimpl
    def timberframe_kernels(self) -> list[KernelDef]:
        return accelerator_kernels(self.device.type)


def kernel_sources(most: int, ops: Sequence[str] = ()) -> dict[str, str]:
    """Sources, and what each is for. most: samples of an op that are built in one combination of dtypes."""
    plugin = RecordingPlugin()
    loader.registry.add("recording", plugin)
    device = plugin.device
    device.kernels = loader.registry.kernels
    target = Target("recording", cast(Device, device), config={"plugins": ("recording",)})
    try:
        with _unfolding_always():
            _build_samples(target, device, most, ops)
    finally:
        loader.registry.remove("recording")
    if device.failures:
        raise RuntimeError(f"no sample of these ops is built: {device.failures}; one of each is required")
    return device.sources


@contextlib.contextmanager
def _unfolding_always() -> Iterator[None]:
    """Lets convolutions of few channels be unfolded, too."""
    least, unfolding.LEAST_COLUMNS = unfolding.LEAST_COLUMNS, 0
    try:
        yield
    finally:
        unfolding.LEAST_COLUMNS = least


def _build_samples(target: Target, device: RecordingDevice, most: int, ops: Sequence[str]) -> None:
    """Builds kernels for samples; one that fails, which the conformance suite reports, has no source."""
    for op in registry.all_ops():
        if (ops and op.name not in ops) or not is_callable(op):
            continue
        counts: dict[Types, int] = {}
        built, failure = False, ""
        for trial in trials(op, supported(op, target)[0]):
            counts[trial.types] = counts.get(trial.types, 0) + 1
            if counts[trial.types] <= most:
                device.asking = f"{op.name} {dict(trial.types)} {trial.detail}"
                for device.library in (False, True):
                    try:
                        _build(target, trial)
                        built = True
                    except (OpError, UnsupportedError) as e:
                        failure = f"{trial.detail}: {e}"
        if failure and not built:
            device.failures[op.name] = failure


def _build(target: Target, trial: Trial) -> None:
    """Builds the kernel of a trial's node."""
    arrays = trial.arrays(trial.detail)
    attrs = trial.attrs(arrays)
    if any(a.dtype is resource for a in trial.op.inputs):  # a variable's node is made by the compiler
        drive.call(target, trial.op, attrs, arrays)
        return
    cluster, _ = one_node(target.device, trial.op, attrs, [np.asarray(x) for x in drive.flatten(arrays)])
    node = cluster.nodes[0]
    kernel = loader.registry.kernels.find(node)
    if kernel is not None:
        build_kernel(kernel, node)
