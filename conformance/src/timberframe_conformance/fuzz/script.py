"""Writes a program as a stand-alone Python script."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.fuzz.build import build
from timberframe_conformance.fuzz.checks import CHECKS, REPLAY, REPLAYED, SETUP, VARIANT, WITHOUT_LIMITS, limits_source
from timberframe_conformance.fuzz.expected import expect
from timberframe_conformance.fuzz.program import PLACED, Program, Ref, Step, is_ref
from timberframe_conformance.fuzz.script_seams import seam_lines
from timberframe_conformance.fuzz.subject import all_shapes_known, no_shapes_known
from timberframe_conformance.repro import array_source, value_source

KEEP_SHAPE = """
def keep_shape(tensor, variable):
    same = tf.identity(tensor)
    same.set_shape(variable.shape)
    return same


"""

UNPACK = """
def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype).reshape(shape)


"""

START = "feeds, variables = {}, []\n"

RUN = """
with tf.Session(config=tf.SessionConfig(allow_soft_placement=True)) as session:
    for _ in range(2):
        session.run([v.initializer for v in variables])
        print(session.run(fetches, feeds))
"""

MUTANT = """from timberframe_conformance.fuzz.mutants import FRAMEWORK_MUTANTS

FRAMEWORK_MUTANTS[{!r}].apply()
"""

IMPORTS = {
    "import base64, zlib": "unpack(",
    "import sys": "sys.",
    "from concurrent.futures import ThreadPoolExecutor": "ThreadPoolExecutor(",
    "from pathlib import Path": "Path(",
    "import ml_dtypes": "ml_dtypes.",
    "import numpy as np": "np.",
    "import timberframe as tf": "tf.",
    "from timberframe_conformance.cli import main": "main(",
    "from timberframe_conformance.fuzz.oracles.feeds import FORMS": "FORMS.",
    "from timberframe_core.graph.apply import apply_op": "apply_op(",
}
"""Imports, each with what needs it."""


def script(
    program: Program, title: str, spec: str = "", oracle: str = "", mutant: str = "", arguments: Sequence[str] = ()
) -> str:
    """Returns a script that builds the program's graph, does what the oracle did, and exits
    with status 1 if that fails.

    What failed before the first oracle (building, a crash) it shows by running the graph twice. mutant: a known bug to
    put into the framework first. arguments: of the command that judges a stored finding again.
    """
    body = _graph(program, spec) + (_check(program, spec, oracle) or RUN)
    if oracle in REPLAYED or (oracle and program.draws):
        body += REPLAY.format(arguments=", ".join(f'"{a}"' for a in arguments))
    helpers = UNPACK if "unpack(" in body else ""
    helpers += KEEP_SHAPE if any(s.kind in ("while", "scan") for s in program.all_steps()) else ""
    whole = helpers + START + body
    imports = "".join(
        f"{line}\n" for line, need in IMPORTS.items() if re.search(rf"(?<![\w.]){re.escape(need)}", whole)
    )
    docstring = title.replace('"""', "'''").replace("\\", "\\\\")
    return f'"""{docstring}"""\n' + imports + (MUTANT.format(mutant) if mutant else "") + "\n" + whole


def _graph(program: Program, spec: str, indent: str = "") -> str:
    """Returns the lines that build a program's graph, feeds, variables and fetches."""
    writer = _Writer(spec)
    lines = [line for i, step in enumerate(program.steps) for line in writer.step(i, step, indent)]
    lines.append(f"{indent}fetches = [{', '.join(writer.ref(r) for r in program.outputs)}]")
    return "\n".join(lines) + "\n"


def _check(program: Program, spec: str, oracle: str) -> str:
    """Returns what an oracle did, "" if that cannot be written: then the program's truth cannot
    be computed here, either.
    """
    if oracle not in CHECKS or program.draws:
        return ""
    limits = ""
    if oracle not in WITHOUT_LIMITS:
        try:
            built = build(program, spec)
            limits = limits_source(expect(built.fetches, built.feeds, built.initializers), oracle == "truth")
        except Exception:  # building the graph, or a reference, is what fails
            return ""
    text = SETUP + limits + CHECKS[oracle]
    for what, other in VARIANTS.get(oracle, {}).items():
        text += f"with tf.Graph().as_default():\n    {START}" + _graph(other(program), spec, "    ")
        text += VARIANT.format(what=what)
    return text


VARIANTS: dict[str, dict[str, Callable[[Program], Program]]] = {
    "shapes": {"all shapes known": all_shapes_known, "no shapes known": no_shapes_known},
    "placement": {
        "nodes placed freely": lambda p: p.placed(lambda step, i: ""),
        "nodes on the host": lambda p: p.placed(lambda step, i: "host"),
        "nodes alternately on the host": lambda p: p.placed(lambda step, i: ("host", step.device)[i % 2]),
    },
}
"""By oracle other graphs that give the same results."""


class _Writer:
    """Names steps s0, s1, ...; inside bodies with one more letter for each level."""

    def __init__(self, spec: str, prefix: str = "s") -> None:
        self.spec = spec
        self.prefix = prefix
        self.single: dict[int, bool] = {}
        self.reads: dict[str, str] = {}

    def ref(self, r: Ref) -> str:
        name = f"{self.prefix}{r[0]}"
        return name if self.single.get(r[0], True) else f"{name}[{r[1]}]"

    def inputs(self, step: Step) -> list[str]:
        return [self.ref(x) if is_ref(x) else "[" + ", ".join(map(self.ref, x)) + "]" for x in step.inputs]

    def step(self, i: int, step: Step, indent: str) -> list[str]:
        """Returns the lines of a step."""
        self.single[i] = step.kind in ("input", "feed", "const", "variable", "assign", "map", "scan", "array")
        name = f"{self.prefix}{i}"
        spec = {"device": self.spec, "host": "/device:CPU:0"}.get(step.device, "")
        lines = self._lines(name, step)
        if spec and step.kind in PLACED:
            lines = [f"with tf.device({spec!r}):", *("    " + line for line in lines)]
        return [indent + line for line in lines]

    def _lines(self, name: str, step: Step) -> list[str]:
        given = self.inputs(step)
        match step.kind:
            case "feed":
                assert step.value is not None
                dtype = value_source(_dtype(step.value))
                return [f"{name} = tf.placeholder({dtype}, {step.known})", f"feeds[{name}] = {_array(step.value)}"]
            case "const":
                assert step.value is not None
                return [f"{name} = tf.constant({_array(step.value)})"]
            case "variable":
                assert step.value is not None
                made = f"tf.Variable({_array(step.value)}, use_resource=True)"
                return [
                    f"{name}_variable = {made}",
                    f"variables.append({name}_variable)",
                    f"{name} = {name}_variable.read_value()",
                ]
            case "assign":
                variable, read = given[0], self.reads.get(given[0], given[0])
                self.reads[variable] = name
                return [
                    f"with tf.control_dependencies([{read}]):",
                    f"    {name}_update = {variable}_variable.{step.op}({given[1]}, read_value=False)",
                    f"with tf.control_dependencies([{name}_update]):",
                    f"    {name} = {variable}_variable.read_value()",
                ]
            case "op":
                attrs = "{" + ", ".join(f"{k!r}: {value_source(v)}" for k, v in step.attrs.items()) + "}"
                made = f"apply_op({step.op!r}, [{', '.join(given)}], {attrs})"
                return [f"{name} = {made}", f"{name} = {name} if isinstance({name}, list) else [{name}]"]
            case "call":
                return self._call(name, step, given)
            case "grad":
                return [
                    f"{name} = tf.gradients({', '.join(given)})",
                    f"{name} = [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) "
                    f"for g, x in zip({name}, {given[1]})]",
                ]
            case "array":
                return self._array(name, step, given)
            case "host" | "queue" | "table" | "random":
                return seam_lines(name, step, given)
        return self._flow(name, step, given)

    def _call(self, name: str, step: Step, given: Sequence[str]) -> list[str]:
        attrs = dict(step.attrs)
        names = attrs.pop("inputs", None)
        call = [f"{n}={g}" for n, g in zip(names, given, strict=True)] if names else list(given)
        call += [f"{k}={value_source(v)}" for k, v in attrs.items()]
        return [
            f"{name} = tf.{step.op}({', '.join(call)})",
            f"{name} = list({name}) if isinstance({name}, (list, tuple)) else [{name}]",
        ]

    def _array(self, name: str, step: Step, given: Sequence[str]) -> list[str]:
        lines = [f"{name} = tf.TensorArray({given[0]}.dtype, {len(given)}, infer_shape={step.attrs['infer_shape']})"]
        lines += [f"{name} = {name}.write({i}, {g})" for i, g in enumerate(given)]
        read = {"stack": "stack()", "concat": "concat()"}.get(step.attrs["read"])
        if read is None:
            indices = step.attrs["indices"]
            read = f"gather({list(indices)})" if step.attrs["read"] == "gather" else f"read({indices[0]})"
        return [*lines, f"{name} = {name}.{read}"]

    def _flow(self, name: str, step: Step, given: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for k, body in enumerate(step.bodies):
            lines += self._function(f"{name}_body{k}", body)
        rest = ", ".join(given[1:])
        calls = [f"lambda: {name}_body{k}({rest})" for k in range(len(step.bodies))]
        match step.kind:
            case "cond":
                made = f"tf.cond({given[0]}, {', '.join(calls)})"
            case "case":
                made = f"tf.switch_case({given[0]}, [{', '.join(calls)}])"
            case "while":
                following = f"[i + 1, *map(keep_shape, {name}_body0(i, *v), v)]"
                made = (
                    f"list(tf.while_loop(lambda i, *_: i < {given[0]}, lambda i, *v: {following}, "
                    f"[tf.constant(0), {rest}]))[1:]"
                )
                return [*lines, f"{name} = {made}"]
            case "map":
                dtype = value_source(step.attrs["dtype"])
                arguments = ", ".join(["row", *given[1:]])
                return [
                    *lines,
                    f"{name} = tf.map_fn(lambda row: {name}_body0({arguments})[0], {given[0]}, dtype={dtype})",
                ]
            case _:
                arguments = ", ".join(["a", "row", *given[2:]])
                return [
                    *lines,
                    f"{name} = tf.scan(lambda a, row: keep_shape({name}_body0({arguments})[0], a), "
                    f"{given[1]}, {given[0]})",
                ]
        return [*lines, f"{name} = {made}", f"{name} = list({name}) if isinstance({name}, (list, tuple)) else [{name}]"]

    def _function(self, name: str, body: Program) -> list[str]:
        inner = _Writer(self.spec, f"{name}_s")
        parameters = [f"{name}_s{i}" for i, s in enumerate(body.steps) if s.kind == "input"]
        lines = [f"def {name}({', '.join(parameters)}):"]
        for i, step in enumerate(body.steps):
            if step.kind == "input":
                inner.single[i] = True
            else:
                lines += inner.step(i, step, "    ")
        return [*lines, f"    return [{', '.join(map(inner.ref, body.outputs))}]"]


def _array(x: np.ndarray) -> str:
    return array_source(x).split("  #")[0]


def _dtype(x: np.ndarray) -> Any:
    from timberframe_core.dtypes import as_dtype

    return as_dtype(x.dtype)
