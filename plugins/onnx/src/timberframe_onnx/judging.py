"""ONNX's own tests as a suite of `conformance run --suite onnx`: on any device, each judged as a case of ours is.

A test is about a subject, as "onnx:Softmax". It passes by fallback where another device ran some of its ops, and is
unsupported where others ran all of them. A test that fails on the CPU, too, for a reason that `FAILING` has, says
nothing of a device.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import onnx

from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError, UnsupportedError
from timberframe_conformance.options import Options
from timberframe_conformance.repro import case_script
from timberframe_core.errors import NoKernelError
from timberframe_onnx import suite
from timberframe_onnx.model import Model

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "onnx"


class _Judged(Model):
    """A model that runs on the device under test; ops that it lacks run elsewhere, which the verdict says."""

    def __init__(self, proto: onnx.ModelProto, target: Target) -> None:
        self._target = target
        super().__init__(proto, None, target.spec, None)

    def session(self, graph: Any) -> Any:
        """Returns a session of a graph of this model, on the target that has the device."""
        return self._target.session(graph, allow_soft_placement=True)


def collect(target: Target, ops: Any) -> Iterator[Case]:
    """Yields each of ONNX's tests, in the order of their names; ops: those of ours, which such tests do not ask for."""
    for test in suite.cases(lambda proto: _Judged(proto, target)):
        types = tuple((f"T{i}", dtype) for i, dtype in enumerate(test.dtypes))
        subject = f"{SUITE}:{test.op}"
        script = functools.partial(_script, test, target.name)
        yield Case(SUITE, subject, types, test.name, functools.partial(_run, test), script=script)


def _run(test: suite.Case, target: Target) -> Measured | None:
    """Runs a test; what another device looked up kernels for ran there."""
    try:
        test.run()
    except unittest.SkipTest as e:
        raise NotApplicableError(f"ONNX leaves it out: {e}") from e
    except NoKernelError:
        raise
    except Exception as e:
        if test.name in suite.FAILING:
            raise NotApplicableError(f"it fails on the CPU, too: {suite.FAILING[test.name]}") from e
        if isinstance(e, AssertionError):
            raise CaseFailedError(f"{_first_lines(str(e))}{_moved(target)}") from e
        raise
    moved = target.lookups.elsewhere()
    if not moved:
        return None
    if not target.lookups.own():
        raise UnsupportedError(f"none of its ops ran on the device{_moved(target)}")
    return Measured(fallback=_moved(target).removeprefix("; "))


def _moved(target: Target) -> str:
    """Returns which ops another device ran, as the end of a message."""
    by_device: dict[str, list[str]] = {}
    for op, device in sorted(target.lookups.elsewhere().items()):
        by_device.setdefault(device, []).append(op)
    return "".join(f"; {device} ran {', '.join(ops)}" for device, ops in by_device.items())


def _first_lines(message: str) -> str:
    """Returns what NumPy says of a difference, in one line, without the arrays."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    return "; ".join(line for line in lines if not line.startswith(("ACTUAL:", "DESIRED:", "[", "array")))[:400]


def _script(test: suite.Case, device: str, spec: str) -> str:
    """Returns a script that runs a test: one of a node needs nothing but this package and ONNX."""
    if test.family != "Node":
        types = ",".join(test.dtypes) or "-"
        return case_script(f"{SUITE}/{SUITE}:{test.op}/{types}/{test.name}", Options(device))
    return _NODE_SCRIPT.format(name=test.name, spec=spec)


_NODE_SCRIPT = '''"""ONNX's test {name} on {spec}."""
import onnx
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
import timberframe_onnx
import timberframe as tf

(test,) = [t for t in load_model_tests(kind="node") if t.name == "{name}"]
print(onnx.printer.to_text(test.model))
model = timberframe_onnx.load(test.model, device="{spec}", config=tf.SessionConfig(allow_soft_placement=True))
plain = lambda x: onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x
for inputs, expected in test.data_sets:
    got = model.run(dict(zip((port.name for port in model.inputs), map(plain, inputs))))
    print("got     ", got)
    print("expected", expected)
    Runner.assert_similar_outputs(list(map(plain, expected)), list(got.values()), test.rtol, test.atol)
print("right, within ONNX's limits")
'''
