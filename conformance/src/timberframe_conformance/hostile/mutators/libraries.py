"""Wrong structure in the function library of a GraphDef: signatures, results, recursion, depth."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from timberframe_conformance.hostile.mutators.values import DTYPES, TEXTS, change_attr, pick
from timberframe_core.graphdef.messages import FunctionDef

DEPTHS = (10, 200, 1000)


def _function(rng: random.Random, graph: Any) -> Any:
    return pick(rng, graph.library.function)


def _drop_function(rng: random.Random, graph: Any) -> None:
    graph.library.function.remove(_function(rng, graph))


def _repeat_function(rng: random.Random, graph: Any) -> None:
    graph.library.function.add().CopyFrom(_function(rng, graph))


def _rename_function(rng: random.Random, graph: Any) -> None:
    _function(rng, graph).signature.name = rng.choice([*TEXTS, _function(rng, graph).signature.name, "Add", "While"])


def _other_body(rng: random.Random, graph: Any) -> None:
    """Writes the body of one function under the name of another."""
    one, other = _function(rng, graph), FunctionDef()
    other.CopyFrom(_function(rng, graph))
    other.signature.name = one.signature.name
    one.CopyFrom(other)


def _calls(graph: Any) -> list[Any]:
    """Returns all attrs that name functions."""
    lists = [graph.node, *(f.node_def for f in graph.library.function)]
    return [a for nodes in lists for n in nodes for a in n.attr.values() if a.WhichOneof("value") == "func"]


def _other_callee(rng: random.Random, graph: Any) -> None:
    """Writes a call of another function: of wrong types, of one that calls it (recursion), or of none."""
    names = [f.signature.name for f in graph.library.function]
    pick(rng, _calls(graph)).func.name = rng.choice([*names, *names, "missing", ""])


def _drop_argument(rng: random.Random, graph: Any) -> None:
    args = _function(rng, graph).signature.input_arg
    args.remove(pick(rng, args))


def _drop_result(rng: random.Random, graph: Any) -> None:
    args = _function(rng, graph).signature.output_arg
    args.remove(pick(rng, args))


def _add_argument(rng: random.Random, graph: Any) -> None:
    signature = _function(rng, graph).signature
    target = rng.choice([signature.input_arg, signature.output_arg])
    target.add(name=rng.choice([*TEXTS, "extra"]), type=rng.choice(DTYPES))


def _change_argument(rng: random.Random, graph: Any) -> None:
    signature = _function(rng, graph).signature
    argument = pick(rng, [*signature.input_arg, *signature.output_arg])
    kind = rng.randrange(4)
    if kind == 0:
        argument.type = rng.choice(DTYPES)
    elif kind == 1:
        argument.name = rng.choice(TEXTS)
    elif kind == 2:
        argument.type_attr = "T"
    else:
        argument.handle_data.add(dtype=rng.choice(DTYPES))


def _reorder_arguments(rng: random.Random, graph: Any) -> None:
    signature = _function(rng, graph).signature
    for args in (signature.input_arg, signature.output_arg):
        order = [type(a).FromString(a.SerializeToString()) for a in args]
        rng.shuffle(order)
        del args[:]
        args.extend(order)


def _change_result(rng: random.Random, graph: Any) -> None:
    function = _function(rng, graph)
    target = rng.choice([function.ret, function.ret, function.control_ret])
    names = [n.name for n in function.node_def] or ["x"]
    key = pick(rng, sorted(target)) if len(target) else "x"
    if rng.random() < 0.3:
        target.pop(key, None)
    else:
        target[key] = rng.choice([pick(rng, names) + ":output:0", pick(rng, names), pick(rng, names) + ":z:5", *TEXTS])


def _argument_attrs(rng: random.Random, graph: Any) -> None:
    function = _function(rng, graph)
    change_attr(rng, function.arg_attr[rng.choice([0, 1, 2**31])].attr[rng.choice(["_output_shapes", "_x"])])


def _stateful(rng: random.Random, graph: Any) -> None:
    signature = _function(rng, graph).signature
    signature.is_stateful = not signature.is_stateful


def _deep(rng: random.Random, graph: Any) -> None:
    """Writes a chain of functions, each of which calls the next one, at times twice."""
    depth, twice = rng.choice(DEPTHS), rng.random() < 0.3
    for i in range(depth):
        function = graph.library.function.add()
        function.signature.name = f"deep{i}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        node = function.node_def.add(name="n", op="Neg" if i == depth - 1 else "PartitionedCall", input=["x"])
        _call_attrs(node, f"deep{i + 1}")
        if twice and node.op != "Neg":
            _call_attrs(function.node_def.add(name="m", op="PartitionedCall", input=["n:output:0"]), f"deep{i + 1}")
        function.ret["y"] = "n:y:0" if node.op == "Neg" else "m:output:0" if twice else "n:output:0"
    graph.node.add(name="deep_in", op="Const").attr["dtype"].type = 1
    graph.node[-1].attr["value"].tensor.dtype = 1
    _call_attrs(graph.node.add(name="deep_call", op="PartitionedCall", input=["deep_in"]), "deep0")


def _call_attrs(node: Any, callee: str) -> None:
    if node.op == "Neg":
        node.attr["T"].type = 1
        return
    node.attr["f"].func.name = callee
    for key in ("Tin", "Tout"):
        node.attr[key].list.type.append(1)


def _deep_nest(rng: random.Random, graph: Any) -> None:
    """Nested branches or loops, up to somewhat deeper than programs nest them."""
    depth, op = rng.choice(DEPTHS), rng.choice(["StatelessIf", "If", "StatelessWhile", "While"])
    loop = "While" in op
    condition = graph.library.function.add()
    condition.signature.name = "nest_condition"
    condition.signature.input_arg.add(name="x", type=10)
    condition.signature.output_arg.add(name="y", type=10)
    condition.ret["y"] = "x"
    for i in range(depth):
        function = graph.library.function.add()
        function.signature.name = f"nest{i}"
        function.signature.input_arg.add(name="x", type=10)
        function.signature.output_arg.add(name="y", type=10)
        if i == depth - 1:
            function.node_def.add(name="n", op="LogicalNot", input=["x"])
            function.ret["y"] = "n:y:0"
        else:
            node = function.node_def.add(name="n", op=op, input=["x"] if loop else ["x", "x"])
            _nest_attrs(node, loop, f"nest{i + 1}")
            function.ret["y"] = "n:output:0"
    graph.node.add(name="nest_in", op="Const").attr["dtype"].type = 10
    graph.node[-1].attr["value"].tensor.dtype = 10
    graph.node[-1].attr["value"].tensor.bool_val.append(True)
    nest = graph.node.add(name="nest", op=op, input=["nest_in"] if loop else ["nest_in", "nest_in"])
    _nest_attrs(nest, loop, "nest0")


def _nest_attrs(node: Any, loop: bool, body: str) -> None:
    if loop:
        node.attr["T"].list.type.append(10)
        node.attr["cond"].func.name, node.attr["body"].func.name = "nest_condition", body
        return
    node.attr["Tcond"].type = 10
    for key in ("Tin", "Tout"):
        node.attr[key].list.type.append(10)
    node.attr["then_branch"].func.name = node.attr["else_branch"].func.name = body


MUTATORS: Sequence[Callable[[random.Random, Any], None]] = (
    _drop_function, _repeat_function, _rename_function, _other_body, _other_body, _other_callee, _other_callee,
    _drop_argument, _drop_result, _drop_result, _add_argument, _change_argument, _reorder_arguments, _change_result,
    _change_result, _argument_attrs, _stateful,
)  # fmt: skip
DEEP: Sequence[Callable[[random.Random, Any], None]] = (_deep, _deep_nest)
"""Much slower than the others, so they are chosen less often."""
