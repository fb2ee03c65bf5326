"""Compositions under tapes: functions, branches, loops, gradients of the program's own, to second order."""

from __future__ import annotations

from timberframe_conformance.fuzz.families.family import Drawer, Family, indented

UNARY = (
    "tf.sin({0})", "tf.cos({0})", "tf.tanh({0})", "tf.sigmoid({0})", "tf.square({0})", "tf.exp(tf.sin({0}))",
    "tf.nn.softplus({0})", "tf.log(1.5 + tf.square({0}))", "tf.sqrt(1.0 + tf.square({0}))", "tf.atan({0})",
    "tf.math.log1p(tf.square({0}))", "tf.math.erf({0})", "{0} * {0} * {0}", "-{0}", "tf.nn.elu({0})",
    "tf.nn.relu({0} + 0.37)", "tf.abs({0} - 0.71)", "tf.nn.softmax({0})", "tf.nn.log_softmax({0})",
    "tf.cumsum({0})", "tf.math.cumprod({0} + 3.0)", "tf.reverse({0}, [0])", "tf.sort({0})", "tf.identity({0})",
    "tf.clip_by_value({0}, -1.3, 1.1)", "tf.pow(1.2 + tf.square({0}), 1.5)", "tf.math.divide_no_nan({0}, 2.0 + {0})",
    "tf.reshape({0}, [-1])", "tf.linalg.l2_normalize({0} + 3.0)", "tf.math.lgamma(2.5 + tf.square({0}))",
    "tf.expm1({0} * 0.3)", "tf.math.rsqrt(1.0 + tf.square({0}))", "tf.asinh({0})", "tf.nn.selu({0})",
    "tf.roll({0}, 1, 0)", "tf.math.reciprocal(2.5 + tf.cos({0}))",
)  # fmt: skip
"""Functions of a vector of N numbers with a vector of N numbers."""

BINARY = (
    "{0} * {1}", "{0} + {1}", "{0} - {1}", "{0} / (2.0 + tf.square({1}))", "tf.maximum({0}, {1} - 0.13)",
    "tf.minimum({0} + 0.21, {1})", "tf.math.squared_difference({0}, {1})", "tf.where({0} > {1} + 0.05, {0}, tf.sin({1}))",
    "tf.atan2({0}, 2.0 + tf.square({1}))", "tf.pow(1.2 + tf.square({0}), {1})", "tf.math.xlogy({0}, 1.5 + tf.square({1}))",
    "tf.add_n([{0}, {1}, {0}])", "tf.tensordot({0}, {1}, 1) * {0}", "tf.unstack(tf.stack([{0}, {1}]))[1]",
    "tf.reshape(tf.matmul(tf.reshape({0}, [1, N]), tf.matmul(tf.reshape({1}, [N, 1]), tf.reshape({0}, [1, N]))), [N])",
    "tf.reduce_sum({0}) * {1}", "tf.reduce_max({0}) - {1}", "tf.reduce_prod({0} + 2.5) * {1}", "tf.reduce_mean({0}) + tf.cos({1})",
    "tf.reduce_logsumexp({0}) * {1}", "tf.concat([{0}[1:], {1}[:1]], 0)", "tf.gather({0}, [0, N - 1, 0][:N]) + {1}",
    "tf.math.unsorted_segment_sum({0}, [0, 1, 0][:N], N) * {1}", "tf.math.segment_mean({0}, [0, 2, 2][:N])[:1] * {1}",
    "tf.pad({0}[:-1], [[1, 0]]) + {1}", "tf.slice(tf.tile({0}, [2]), [1], [N]) * {1}", "tf.norm({0} + 3.0) * {1}",
    "tf.einsum('i,i->i', {0}, {1})", "tf.scatter_nd([[1], [0], [1]][:N], {0}, [N]) - {1}",
    "tf.tensor_scatter_nd_update({0}, [[0]], {1}[1:2])", "tf.math.top_k({0}, N)[0] * {1}",
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid({0}), logits={1})", "tf.stop_gradient(tf.ones_like({0})) * {1}",
)  # fmt: skip
"""Functions of two such vectors; N is their length."""

CUSTOM = (
    "y = tf.log(1.0 + tf.exp({x}))\ndef grad(dy):\n    return dy * (1.0 - 1.0 / (1.0 + tf.exp({x})))",
    "y = tf.sin({x})\ndef grad(dy):\n    return dy * tf.cos({x})",
    "y = tf.square({x}) * 0.5\ndef grad(dy):\n    return dy * {x}",
    "e = tf.exp(0.4 * {x})\ny = e * 2.0\ndef grad(dy):\n    return dy * 0.8 * e",
    "y = tf.tanh({x})\ndef grad(dy):\n    return dy * (1.0 - tf.square(y))",
)
"""Bodies of functions of {x} with gradients of their own, which are the derivatives."""

WAYS = ("tape", "tape", "persistent", "function", "graph")


class _Body:
    """Draws the statements of a function of vectors of one length."""

    def __init__(self, d: Drawer, size: int, functions: list[str]) -> None:
        self.d = d
        self.size = size
        self.functions = functions

    def function(self, name: str, count: int, depth: int) -> list[str]:
        """Returns a function of this number of vectors, with a vector."""
        names = [f"{name}_{c}" for c in "ab"[:count]]
        return [f"def {name}({', '.join(names)}):", *indented(self.statements(names, self.d.whole(1, 2), depth))]

    def statements(self, names: list[str], count: int, depth: int) -> list[str]:
        """Returns statements, the last of which returns a vector."""
        lines, known = [], list(names)
        for _ in range(count):
            made = self.d.name("t")
            before, text = self.expression(known, depth)
            lines += [*before, f"{made} = {text}"]
            known.append(made)
        return [*lines, f"return {known[-1]}"]

    def expression(self, known: list[str], depth: int) -> tuple[list[str], str]:
        """Lines that come before, and a vector."""
        d = self.d
        a, b = d.choose(known[-2:]), d.choose(known)
        if depth and d.chance(0.4):
            return self.flow(a, b, known, depth - 1)
        if self.functions and d.chance(0.25):
            return [], f"{d.choose(self.functions)}({a})"
        text = d.choose(UNARY) if d.chance(0.5) else d.choose(BINARY)
        return [], text.replace("N", str(self.size)).format(a, b)

    def flow(self, a: str, b: str, known: list[str], depth: int) -> tuple[list[str], str]:
        """Returns a branch or a loop."""
        d = self.d
        limit = d.number(-1.5, 1.5)
        kind = d.choose(["cond", "switch", "case", "while", "while", "map", "scan", "nested"])
        one, two = d.name("f"), d.name("f")
        lines = self.function(one, 1, depth)
        if kind in ("cond", "switch", "case"):
            lines += self.function(two, 2, depth)
        if kind == "cond":
            return lines, f"tf.cond(tf.reduce_sum({b}) > {limit}, lambda: {one}({a}), lambda: {two}({a}, {b}))"
        if kind == "switch":
            index = f"tf.cast(tf.reduce_sum({b}) > {limit}, tf.int32) + {d.whole(0, 1)}"
            return lines, f"tf.switch_case({index}, [lambda: {one}({a}), lambda: {two}({a}, {b}), lambda: {a} * 2.0])"
        if kind == "case":
            pairs = f"[(tf.reduce_max({b}) > {limit}, lambda: {one}({a}))]"
            return lines, f"tf.case({pairs}, default=lambda: {two}({a}, {b}))"
        if kind == "while":
            times = d.whole(0, 3)
            more = "" if d.chance(0.6) else f", maximum_iterations={d.whole(0, 4)}"
            other = d.choose([f"v * 0.5 + {b}", "v * 0.9", f"tf.sin(v + {b})"])
            body = f"lambda i, u, v: (i + 1, {one}(u) * 0.5 + v * 0.25, {other})"
            return lines, f"tf.while_loop(lambda i, u, v: i < {times}, {body}, (0, {a}, {b}){more})[1]"
        if kind == "map":
            rows = f"tf.stack([{a}, {b}, {a} * 0.5])"
            return lines, f"tf.reduce_sum(tf.map_fn(lambda row: {one}(row), {rows}), 0)"
        if kind == "scan":
            rows = f"tf.stack([{a}, {b}])"
            return lines, f"tf.scan(lambda s, row: {one}(s * 0.5 + row), {rows}, initializer={b})[-1]"
        inner = d.choose([
            f"tape.gradient(y, {a}, unconnected_gradients=tf.UnconnectedGradients.ZERO)",
            f"tape.gradient(tf.reduce_sum(y), [{a}], unconnected_gradients=tf.UnconnectedGradients.ZERO)[0]",
        ])  # fmt: skip
        made = d.name("g")
        lines += ["with tf.GradientTape() as tape:", f"    tape.watch({a})", f"    y = {one}({a})", f"{made} = {inner}"]
        return lines, f"{made} * 0.3 + y * 0.1"


def draw(d: Drawer) -> str:
    """Returns a program with a function of two vectors, whose slopes are judged in one of the ways."""
    size = d.whole(2, 3)
    way = d.choose(WAYS)
    lines: list[str] = []
    functions: list[str] = []
    body = _Body(d, size, functions)
    if d.chance(0.4):
        name = d.name("c")
        text = d.choose(CUSTOM).replace("{x}", "x")
        lines += ["@tf.custom_gradient", f"def {name}(x):", *indented([text, "return y, grad"])]
        functions.append(name)
    for _ in range(d.whole(0, 2)):
        name = d.name("h")
        lines += ["@tf.function"] * (d.chance(0.7) and way != "graph") + body.function(name, 1, 1)
        functions.append(name)
    lines += ["def f(x, y):", *indented(body.statements(["x", "y"], d.whole(1, 4), 2))]
    result = lines[-1].replace("return ", "return tf.reduce_sum(")
    lines[-1] = f"{result} * tf.constant([1.0, -0.7, 0.4][:{size}], tf.float64))"
    points = f"[{d.numbers((size,))}, {d.numbers((size,))}]"
    second = d.chance(0.6)
    lines.append(f"derivatives(tf, show, f, {points}, {way!r}, second={second})")
    return "\n".join(lines) + "\n"


FAMILY = Family(
    "tapes",
    "compositions under tapes and functions: first and second derivatives beside differences",
    draw,
    share={"float64": 1e-8},
)
