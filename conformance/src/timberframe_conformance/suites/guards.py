"""Guard zones, poison, inaccessible pages: a kernel writes all of its outputs and nothing else, and reads its inputs
alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.cluster import copied_in, fenced_input, one_node, run_on_tensors
from timberframe_conformance.drive import flatten
from timberframe_conformance.suites.choice import chosen, middling, short, small
from timberframe_conformance.suites.forward import judge
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import Cluster
from timberframe_sdk.testing.guard import zones_checked

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "guards"


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields several sizes of each op and dtype, through the device's contract, in the guarded mode."""
    for trial in chosen(target, ops, small, middling, short):
        yield trial_case(SUITE, trial, run_trial)


def run_trial(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Calls the op as the trial says between guard zones, and against inaccessible pages, and judges its results."""
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    flat = flatten(arrays)

    def judged(got: Sequence[np.ndarray], cluster: Cluster) -> Measured | None:
        return judge(trial, attrs, arrays, got, [v.dtype for v in cluster.outputs], target)

    looked = zones_checked()
    got, cluster = _run_guarded(trial, attrs, flat, target)  # names the node of a write outside
    try:
        measured = judged(got, cluster)
    except CaseFailedError as e:
        if target.device.asynchronous:
            judged(*_run_guarded(trial, attrs, flat, target, synchronize=True))
            raise CaseFailedError(
                f"copy_out does not wait for the launches that make its tensor: {e}; after synchronize() it is right"
            ) from e
        raise
    if target.device.host_memory:
        for fence in ("end", "start"):
            again, cluster = _run_guarded(trial, attrs, flat, target, fence)
            if not all(map(_same, got, again)):
                judged(again, cluster)
    bounded = any(not v.dtype.hasobject for v in cluster.outputs)  # what holds objects has no bytes of its own
    if bounded and zones_checked() == looked and not target.url:  # in another process zones are counted there
        raise NotApplicableError("no guard zones were put around what was made; results are right, inputs unchanged")
    return measured


def _run_guarded(
    trial: Trial,
    attrs: Mapping[str, Any],
    arrays: Sequence[np.ndarray],
    target: Target,
    fence: str = "",
    synchronize: bool = False,
) -> tuple[list[np.ndarray], Cluster]:
    """Returns the outputs of a guarded run, and the cluster that ran; CaseFailedError where an input was written to.

    Inputs are compared where kernels find them: the host's arrays, which a device may borrow, and the device's tensors.
    """
    passed = [fenced_input(target.device, x, fence) for x in arrays] if fence else arrays
    before = [x.copy() for x in passed]
    cluster, fed = one_node(target.device, trial.op, attrs, passed)
    tensors = copied_in(target.device, fed)
    got = run_on_tensors(target.device, cluster, tensors, "guarded", fence, synchronize)
    now = list(passed)
    for value, tensor in zip(cluster.inputs, tensors, strict=True):
        if _same(now[value.id], before[value.id]):
            now[value.id] = np.asarray(target.device.copy_out(tensor))
    for i, (x, old) in enumerate(zip(now, before, strict=True)):
        if not _same(x, old):
            raise CaseFailedError(f"input {i} was written to; inputs are borrowed and never changed")
    return got, cluster


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b) if a.dtype == object else a.tobytes() == b.tobytes()
