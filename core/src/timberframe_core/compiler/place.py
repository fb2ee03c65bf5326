"""Placement: which device runs each node, why, and why not the others."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from timberframe_core.compiler.host_side import cannot_hold, stays_on_host
from timberframe_core.compiler.ir import VARIABLE_ACCESSES, VARIABLE_WRITES, Node, Program
from timberframe_core.compiler.state import variable_key, variable_name
from timberframe_core.compiler.support import kernel_node, refused, support
from timberframe_core.compiler.whole_bodies import why_driven
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, NoKernelError, UnavailableError
from timberframe_core.failures import describe_failure
from timberframe_core.graph.device_spec import DeviceSpec
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.accelerators import accelerators
from timberframe_core.plugin.contracts import DEPENDS, Device, KernelNode, Support
from timberframe_core.plugin.host_ops import find_host_op
from timberframe_core.plugin.kernels import KernelRegistry

_Refusal = Callable[[Node, Device], str | None]


@dataclass(frozen=True)
class Placement:
    """Where one node went. rejected: (device, why not), best candidates first."""

    node: str
    op: str
    device: str
    reason: str
    requested: str = ""
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass
class Devices:
    """What the placer chooses from: devices by descending priority, and kernels.

    failures, left_out: plugins that failed to load, and those that a setting leaves out, with that setting.
    """

    devices: Sequence[Device]
    kernels: KernelRegistry
    failures: Mapping[str, BaseException] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def matching(self, requested: str) -> list[Device]:
        """Returns the devices that a request, which may leave parts open, allows."""
        if not requested:
            return list(self.devices)
        return self._allowed(DeviceSpec.from_string(requested))

    def nearest(self, requested: str) -> list[Device]:
        """Returns all devices, those of the job and task that are requested first.

        A type that no device has means an accelerator of any type, as in programs that were written for another kind:
        number i the i-th best of them.
        """
        spec = DeviceSpec.from_string(requested)
        near = self._allowed(spec.of_same_task())
        if spec.device_type is not None and all(d.type != spec.device_type for d in near):
            others = accelerators(near, self.host)
            first = others[spec.device_index or 0 :][:1]
            near = [*first, *(d for d in (*others, self.host) if d in near and d not in first)]
        return [*near, *(d for d in self.devices if d not in near)]

    def _allowed(self, spec: DeviceSpec) -> list[Device]:
        return [d for d in self.devices if spec.matches(DeviceSpec.from_string(d.name))]

    @property
    def host(self) -> Device | None:
        """The best device that works in the host's memory."""
        return next((d for d in self.devices if d.host_memory), None)

    @property
    def last_host(self) -> Device | None:
        """The last device that works in the host's memory, which takes every variable that no other one can hold."""
        return next((d for d in reversed(self.devices) if d.host_memory), None)

    def describe(self, requested: str = "") -> str:
        """Returns which devices exist and which plugins failed, for errors; of plugins that are not
        there, the requested one.

        Devices have their full names where the request names a job, replica or task, which may be why none fits.
        """
        spec = DeviceSpec.from_string(requested)
        names_a_task = (spec.job, spec.replica, spec.task) != (None, None, None)
        text = "devices: " + (", ".join(d.name if names_a_task else d.spec for d in self.devices) or "none")
        absent = {n: e for n, e in self.failures.items() if isinstance(e, UnavailableError)}
        wanted = spec.device_type
        for words, found in (
            ("that failed", {n: e for n, e in self.failures.items() if n not in absent}),
            ("without a device", {n: e for n, e in absent.items() if n.upper() == wanted}),
        ):
            if found:
                text += f"; plugins {words}: " + "; ".join(f"{n} ({describe_failure(e)})" for n, e in found.items())
        settings = [f"; plugin {n} is left out by {by}" for n, by in self.left_out.items() if n.upper() == wanted]
        return text + "".join(settings) + ("" if names_a_task else self._how_to_have_more(spec))

    def _how_to_have_more(self, spec: DeviceSpec) -> str:
        """Returns how to have as many devices of a type as a request counts on; empty where
        there are enough, or none.
        """
        kind, number = spec.device_type, spec.device_index or 0
        if not 0 < sum(d.type == kind for d in self.devices) <= number:
            return ""
        return f'; SessionConfig(device_count={{"{kind}": {number + 1}}}) asks its plugin for {number + 1}'


class Placer:
    """Places programs. Decisions are cached by op, dtypes and request, unless a kernel or a device looks at more."""

    def __init__(self, devices: Devices, soft: bool = True, strict: bool = False) -> None:
        self.devices = devices
        self.soft = soft and not strict
        self.strict = strict
        self._choices: dict[Any, tuple[Device, str, tuple[tuple[str, str], ...]]] = {}
        self._refusals: dict[Any, str | None] = {}
        self._looks: dict[tuple[str, int], bool] = {}

    def place(self, program: Program, variables: Mapping[str, Device]) -> list[Placement]:
        """Sets `device` and `reason` of every node that needs a device.

        variables: devices of variables that exist already; their accesses go there.
        """
        where: dict[str, Device] = dict(variables)
        by_name = {n.name: n for n in program.nodes}
        report: list[Placement] = []
        host = self.devices.host
        if self.strict or host is self.devices.devices[0]:
            host = None  # there is nothing to choose
        self._users = _VariableUsers(program.graph)
        for node in program.nodes:
            if node.feed or node.host_value or node.op.role == "constant":
                continue
            rejected: tuple[tuple[str, str], ...] = ()
            colocated = self._colocated(node, by_name, where)
            if colocated is not None:
                node.device, node.reason = colocated
                if node.op.role == "variable":
                    rejected = self._refused_before(node, node.device)
            elif host is not None and not node.requested and stays_on_host(node) and not self._refusal(node, host):
                node.device, node.reason = host, "small, and the host has all that it needs"
            else:
                node.device, node.reason, rejected = self._choose(node)
            if self._looks_closer(node.op.name, node.device):
                node.depends = self._support(node, node.device) is DEPENDS
            if node.op.role == "variable" and node.variable is not None:
                where.setdefault(node.variable, node.device)
            if node.bodies:
                why = why_driven(node, node.device, where, self.devices)
                if why:
                    node.give_to_executor(why)
            report.append(Placement(node.name, node.op.name, node.device.spec, node.reason, node.requested, rejected))
        return report

    def place_body(self, device: Device, program: Program) -> None:
        """Gives all nodes of a body the device of the loop or branch, and notes those about which shapes decide."""
        for node in program.nodes:
            if not node.feed:
                node.device = device
                if node.op.role is None and not node.host_value and self._looks_closer(node.op.name, device):
                    node.depends = self._support(node, device) is DEPENDS

    def _colocated(
        self, node: Node, by_name: Mapping[str, Node], where: Mapping[str, Device]
    ) -> tuple[Device, str] | None:
        """Returns the device that a variable or a colocation request dictates."""
        for name in _variables(node):
            if name in where:
                if node.op.role == "variable":
                    return where[name], "the variable is there"
                why = self._refusal(node, where[name])
                if why is not None:
                    raise self._variable_elsewhere_error(node, name, where[name], why)
                return where[name], f"with variable '{name}'"
        for name in node.colocation:
            other = by_name.get(name)
            if other is not None and other.device is not None and self._refusal(node, other.device) is None:
                return other.device, f"with node '{name}'"
        return None

    def _refused_before(self, node: Node, home: Device) -> tuple[tuple[str, str], ...]:
        """Returns the devices that come before this one and cannot run the node, each with the reason."""
        wanted = self.devices.matching(node.requested)
        better = wanted[: wanted.index(home)] if home in wanted else ()
        return tuple((d.spec, why) for d in better if (why := self._refusal(node, d)) is not None)

    def _choose(self, node: Node) -> tuple[Device, str, tuple[tuple[str, str], ...]]:
        """Returns what `_decide` says; for later nodes of the op and its dtypes too, where no device looked at more."""
        key = None if node.op.role == "variable" else _key(node, node.requested)  # these depend on who uses them
        found = None if key is None else self._choices.get(key)
        if found is None:
            found = self._decide(node)
            device, _, rejected = found
            asked = {device.spec, *(spec for spec, _ in rejected)}
            closer = any(d.spec in asked and self._looks_closer(node.op.name, d) for d in self.devices.devices)
            if key is not None and not closer:
                self._choices[key] = found
        return found

    def _looks_closer(self, op: str, device: Device) -> bool:
        """Returns whether more than dtypes decides if a device can run the op."""
        key = op, id(device)
        found = self._looks.get(key)
        if found is None:
            found = not device.supports_by_dtype or self.devices.kernels.looks_closer(op)
            self._looks[key] = found
        return found

    def place_bound(self, node: Node, bound: KernelNode, why: str) -> Placement:
        """Returns where a node goes whose device declines it now that its shapes are known.

        bound: the node as its device got it. why: what the device answered. NoKernelError lists every reason.
        """
        home = node.device
        assert home is not None
        for name in _variables(node):
            raise self._variable_elsewhere_error(node, name, home, why)

        def refusal(node: Node, device: Device) -> str | None:
            if device is home:
                return why
            return cannot_hold(node, device) or refused(device.supports(replace(bound, device=device)))

        device, reason, rejected = self._decide(node, refusal)
        return Placement(node.name, node.op.name, device.spec, f"{reason} for these shapes", node.requested, rejected)

    def _decide(self, node: Node, refusal: _Refusal | None = None) -> tuple[Device, str, tuple[tuple[str, str], ...]]:
        refusal = refusal or self._refusal
        wanted = self.devices.matching(node.requested)
        rejected: list[tuple[str, str]] = []
        for device in wanted:
            why = refusal(node, device)
            if why is None and not (self.strict and rejected):
                return device, _reason(node), tuple(rejected)
            rejected.append((device.spec, why or "strict placement allows the best device only"))
        if node.requested and (self.soft or node.op.reports_to_host or _is_constant(node)):
            for device in self.devices.nearest(node.requested):
                if device in wanted:
                    continue
                why = refusal(node, device)
                if why is None:
                    return device, self._moved(node, rejected), tuple(rejected)
                rejected.append((device.spec, why))
        raise self._no_device(node, wanted, rejected, refusal)

    def _moved(self, node: Node, rejected: Sequence[tuple[str, str]]) -> str:
        if not self.soft:
            why = "reports to the host" if node.op.reports_to_host else "its inputs are constants, and so is it"
            return f"{why}, though {node.requested} is requested"
        what = f"cannot run it ({rejected[0][1]})" if rejected else "does not exist"
        return f"soft placement: {node.requested} {what}"

    def _refusal(self, node: Node, device: Device) -> str | None:
        """Returns why the device cannot run the node; None if it can, or if shapes will decide."""
        key = None
        if node.op.role != "variable" and not self._looks_closer(node.op.name, device):
            key = _key(node, id(device))
        if key is None:
            return refused(self._support(node, device))
        if key not in self._refusals:
            self._refusals[key] = refused(self._support(node, device))
        return self._refusals[key]

    def _support(self, node: Node, device: Device) -> Support:
        why = cannot_hold(node, device)
        if why is not None:
            return why
        if node.op.role == "variable" and node.variable is not None and device is not self.devices.last_host:
            return self._users.refusal(node.variable, device)
        if node.op.update_op:
            return _assign_refusal(node.op, node, device)
        if node.op.role is not None or node.bodies or node.on_lists or node.op.on_host:
            return None
        return support(node, device)

    def _variable_elsewhere_error(self, node: Node, variable: str, device: Device, why: str) -> Exception:
        tail = f"  [{node.where}]" if node.where else ""
        return NoKernelError(
            f"{node.op.name} '{node.name}': variable '{variable}' lives on {device.spec}, "
            f"which cannot run this ({why}); make the variable on a device that can{tail}",
            node.name,
        )

    def _no_device(
        self, node: Node, wanted: list[Device], rejected: list[tuple[str, str]], refusal: _Refusal
    ) -> Exception:
        head = f"{node.op.name} '{node.name}'"
        tail = f"  [{node.where}]" if node.where else ""
        if not wanted:
            what = f"device {node.requested} does not exist" if node.requested else "there is no device"
            return InvalidArgumentError(
                f"{head}: {what}; {self.devices.describe(node.requested)}"
                f"{self._remedy(node, wanted, refusal) if node.requested else ''}{tail}",
                node.name,
            )
        types = ", ".join(f"{k}={v.name}" for k, v in node.attrs.items() if isinstance(v, DType))
        reasons = "; ".join(f"{device}: {why}" for device, why in rejected)
        label = node.attrs.get("_kernel")
        if label:
            return InvalidArgumentError(f"{head}: no kernel has the label {label!r} ({reasons}){tail}", node.name)
        known, having = "", self.devices.kernels.device_types(node.op.name)
        if not having and find_host_op(node.op.name) is not None:
            known = "a host op is registered for it; to use that, set on_host=True in its definition; "
        elif node.op.role is None:  # those with one run on every device that holds the dtype
            known = f"device types with the op: {', '.join(having) or 'none'}; "
        return NoKernelError(
            f"{head}: no kernel for {types or 'this node'} ({reasons}); {known}"
            f"{self.devices.describe(node.requested)}{self._remedy(node, wanted, refusal)}{tail}",
            node.name,
        )

    def _remedy(self, node: Node, wanted: list[Device], refusal: _Refusal) -> str:
        able = [d.spec for d in self.devices.devices if d not in wanted and refusal(node, d) is None]
        if not able:
            return ""
        return f"; place it on {' or '.join(able)}" + ("" if self.strict else ", or set allow_soft_placement=True")


def _is_constant(node: Node) -> bool:
    """Returns whether a node is a constant in few numbers, as `tf.ones([1000, 1000])` writes it: no device's work."""
    return node.op.sized_by_values and all(x.node.op.role == "constant" and not x.node.feed for x in node.inputs)


def _key(node: Node, more: Any) -> Any:
    """Returns a node's op, dtypes and label, and whether it is constant; None where an attr cannot be looked up."""
    types = tuple(v for v in node.attrs.values() if isinstance(v, DType | tuple))
    key = node.op.name, more, types, node.attrs.get("_kernel", ""), _is_constant(node)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _reason(node: Node) -> str:
    """Returns why a node is on the first device that its request allows."""
    requested = f"requested {node.requested}" if node.requested else ""
    if node.op.on_host or node.on_lists:
        return "the executor carries it out on the host" + (f"; {requested}" if requested else "")
    return requested or "first device by priority that has a kernel"


def _variables(node: Node) -> list[str]:
    """Returns the variables that decide where a node runs, its own first."""
    if node.op.role == "variable" or node.op.role in VARIABLE_ACCESSES:
        return [] if node.variable is None else [node.variable]
    if node.op.reads or node.op.updates:
        return [variable_name(x) for x in node.inputs if x.dtype.name == "resource"]
    return []


class _VariableUsers:
    """Who in a graph reads and writes each variable, though this run may not need it: they all go where it is."""

    def __init__(self, graph: Graph) -> None:
        self._graph = weakref.ref(graph)  # placers live longer
        self._users: dict[str, list[Operation]] | None = None

    def refusal(self, variable: str, device: Device) -> str | None:
        """Returns why the device cannot run one of them; None if it can run all."""
        if self._users is None:
            self._users = self._find()
        for op in self._users.get(variable, ()):
            if op.op_def.role in VARIABLE_WRITES:
                why = _assign_refusal(op.op_def, op, device) if op.op_def.update_op else None
            else:
                why = refused(support(op, device))
            if why is not None:
                return f"{op.type} '{op.name}', which uses it: {why}"
        return None

    def _find(self) -> dict[str, list[Operation]]:
        found: dict[str, list[Operation]] = {}
        graph = self._graph()
        for op in () if graph is None else graph.get_operations():
            if op.op_def.reads or op.op_def.updates or op.op_def.role in VARIABLE_WRITES:
                for x in op.inputs:
                    if x.op.op_def.role == "variable":
                        found.setdefault(variable_key(x.op.name, x.op.attrs), []).append(op)
        return found


def _assign_refusal(op: OpDef, node: Any, device: Device) -> str | None:
    """Returns why the device lacks the pure op that makes the new value."""
    attrs = {"T": node.inputs[1].dtype}
    given = kernel_node(registry.get(op.update_op), node.name, attrs, node, device)
    return refused(device.supports(replace(given, inputs=[given.inputs[1]] * 2, outputs=[given.inputs[1]])))
