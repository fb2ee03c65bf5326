"""Pass `cover`: several nodes of a cluster become one where the device has a kernel for them all (KernelDef.covers)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.errors import OpError
from timberframe_core.fallback import report_failure
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import Cluster, KernelDef, KernelNode, Part, Support, Value
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_core.plugin.passes import Pass


@dataclass(frozen=True)
class _Match:
    """Nodes by the names of their parts, and what the other names stand for, in the order of the pattern."""

    nodes: dict[str, KernelNode]
    values: dict[str, Value]


def run(rewriter: ClusterRewriter) -> None:
    """Covers nodes by kernels: by those of the most parts first."""
    kernels = rewriter.device.kernels
    by_op = kernels.covering(rewriter.device.type)
    if not by_op:
        return
    maker = {v.id: n for n in rewriter.nodes for v in n.outputs}
    found = list(_candidates(rewriter.nodes, by_op, maker))
    found.sort(key=lambda f: (-len(f[0].covers), -f[0].priority))
    taken: set[int] = set()
    for kernel, root in found:
        reasons: dict[str, None] = {}
        for match in _matches(kernel.covers, root, maker):
            if not taken.isdisjoint(id(n) for n in match.nodes.values()):
                continue
            covered = _covered(kernel, match, root)
            why = _needed_elsewhere(match, root, rewriter) or _refusal(kernels, kernel, covered)
            if why is None:
                taken.update(id(n) for n in match.nodes.values())
                rewriter.substitute([match.nodes[part.name] for part in kernel.covers], covered)
                rewriter.keeps_source = False  # a trace shows what runs, and guard zones are for it
                break
            reasons[f"{kernel.origin()}: {why}"] = None
        else:
            for reason in reasons:
                rewriter.decline(root, reason)


def _candidates(
    nodes: Sequence[KernelNode], by_op: Mapping[str, Sequence[KernelDef]], maker: dict[int, KernelNode]
) -> Iterator[tuple[KernelDef, KernelNode]]:
    """Kernels with the nodes that may be their last part: those that read what the parts before it are made by."""
    read = {op: [(_read_by_last(k.covers), k) for k in kernels] for op, kernels in by_op.items()}
    any_of = {op: frozenset[str]().union(*(ops for ops, _ in kernels)) for op, kernels in read.items()}
    for node in nodes:
        if node.op not in read:
            continue
        made = {maker[v.id].op for v in node.inputs if v.id in maker}
        if made.isdisjoint(any_of[node.op]) and all(ops for ops, _ in read[node.op]):
            continue
        yield from ((kernel, node) for ops, kernel in read[node.op] if ops <= made)


def _read_by_last(parts: tuple[Part, ...]) -> frozenset[str]:
    """Returns the ops of the parts that the last one reads."""
    ops = {part.name: part.op for part in parts}
    return frozenset(ops[name] for name in parts[-1].inputs if name in ops)


def _refusal(kernels: KernelRegistry, kernel: KernelDef, covered: KernelNode) -> Support:
    """Returns why the kernel does not take the nodes. A `suits` that raises is one of a kernel that may be left out."""
    try:
        return kernels.refusal(kernel, covered)
    except OpError as e:
        report_failure(f"covering nodes by {kernel.origin()}", e)
        return e.message


def _matches(parts: tuple[Part, ...], root: KernelNode, maker: dict[int, KernelNode]) -> Iterator[_Match]:
    """Yields the ways in which the parts, from the last one back, stand for nodes."""
    by_name = {part.name: part for part in parts}
    waiting: list[tuple[Part, KernelNode]] = [(parts[-1], root)]
    yield from _extend(_Match({}, {}), waiting, by_name, maker)


def _extend(
    match: _Match, waiting: list[tuple[Part, KernelNode]], parts: dict[str, Part], maker: dict[int, KernelNode]
) -> Iterator[_Match]:
    if not waiting:
        if len(match.nodes) == len(parts):
            yield match
        return
    (part, node), *rest = waiting
    known = match.nodes.get(part.name)
    if known is not None:
        if known is node:
            yield from _extend(match, rest, parts, maker)
        return
    if node.op != part.op or any(node is other for other in match.nodes.values()) or node.stream is not None:
        return
    for inputs in _orders(node):
        if len(inputs) != len(part.inputs):
            continue
        values, more = dict(match.values), list(rest)
        if all(_bind(name, value, parts, maker, values, more) for name, value in zip(part.inputs, inputs, strict=True)):
            yield from _extend(_Match({**match.nodes, part.name: node}, values), more, parts, maker)


def _orders(node: KernelNode) -> list[list[Value]]:
    """Returns the inputs, also exchanged where the op allows that."""
    op = registry.find(node.op)
    return [node.inputs, node.inputs[::-1]] if op is not None and op.commutative else [node.inputs]


def _bind(
    name: str,
    value: Value,
    parts: dict[str, Part],
    maker: dict[int, KernelNode],
    values: dict[str, Value],
    waiting: list[tuple[Part, KernelNode]],
) -> bool:
    """Lets a name stand for a value; False where it stands for another one, or no node of its part makes this one."""
    if name not in parts:
        return values.setdefault(name, value) is value
    made = maker.get(value.id)
    if made is None or made.outputs[0].id != value.id or made.inner:
        return False
    waiting.append((parts[name], made))
    return True


def _needed_elsewhere(match: _Match, root: KernelNode, rewriter: ClusterRewriter) -> str | None:
    """Returns why the nodes cannot become one: None where nothing but the root's outputs is
    needed, for no new version.
    """
    own = {id(n) for n in match.nodes.values()}
    written = {u.new.id for u in rewriter.cluster.updates}
    if any(v.id in written for v in root.outputs):
        return f"'{root.name}' makes a variable's new version"
    for node in match.nodes.values():
        for made in node.outputs if node is not root else ():
            if made.dynamic:
                return f"the size of '{node.name}' is known when it has run"
            if rewriter.is_result(made):
                return f"'{node.name}' is fetched or read by another cluster"
            inside = own if made is node.outputs[0] else ()  # a part hands on its first output
            reader = next((n for n in rewriter.readers(made) if id(n) not in inside), None)
            if reader is not None:
                return f"'{node.name}' is also read by '{reader.name}'"
    return None


def _covered(kernel: KernelDef, match: _Match, root: KernelNode) -> KernelNode:
    names = dict.fromkeys(name for part in kernel.covers for name in part.inputs if name in match.values)
    inputs = [match.values[name] for name in names]
    body = Cluster(root.device, [match.nodes[p.name] for p in kernel.covers], list(dict.fromkeys(inputs)), root.outputs)
    return replace(root, op=kernel.op, inputs=inputs, inner=(body,), preparations=(), workspace_bytes=0)


COVER = Pass("cover", "cluster", run, "has one kernel run several nodes, where the device has one that covers them")
