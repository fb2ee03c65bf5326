"""The registry of kernels: who can run which op on which device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from timberframe_core.dtypes import BY_NAME, DType
from timberframe_core.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NoKernelError,
    NotFoundError,
    UnknownError,
)
from timberframe_core.failures import raised
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import DEPENDS, UNKNOWN_RANK, KernelDef, KernelNode, Support

Generator = Callable[[OpDef], Iterable[KernelDef]]
Listener = Callable[[KernelNode, KernelDef | None], None]


class KernelRegistry:
    """KernelDefs by (op, device type). Registration is all or nothing; look-ups are cached.

    Generators are asked once for each op, at its first look-up. What they make stands where their plugin has no kernel
    of the op for the device, also beside kernels of other plugins, which win, and may take fewer dtypes.
    """

    def __init__(self) -> None:
        self._table: dict[tuple[str, str], tuple[KernelDef, ...]] = {}
        self._found: dict[tuple[Any, ...], tuple[KernelDef, ...]] = {}
        self._choosy: set[str] = set()
        """Ops that have a kernel with `suits`."""
        self._covering: dict[str, dict[str, tuple[KernelDef, ...]]] = {}
        self._plugins: dict[int, str] = {}
        """Names of plugins by the ids of their kernels in the table."""
        self._generators: tuple[tuple[Generator, str], ...] = ()
        self._generated: set[str] = set()
        self._only: KernelDef | None = None
        self._made: set[int] = set()
        """The ids of kernels that were generated."""
        self.listeners: tuple[Listener, ...] = ()
        """Called with each node and what `find` gives for it: conformance sees so which kernels run."""
        self._lock = threading.Lock()

    def register(self, kernels: Iterable[KernelDef], plugin: str = "") -> None:
        """Adds kernels, or none of them: two with equal claims raise AlreadyExistsError that names both."""
        with self._lock:
            kernels, table = list(kernels), dict(self._table)
            for new in kernels:
                _check(new)
                key = new.op, new.device
                for old in table.get(key, ()):
                    if _same_claim(old, new):
                        raise AlreadyExistsError(
                            f"kernel {new.op} on {new.device}{_label(new)}: claimed by {old.origin()}, {new.origin()} "
                            f"for {_types(new)}; one of them needs a higher priority or a label"
                        )
                table[key] = (*table.get(key, ()), new)
            self._table = table
            self._found = {}
            self._note(kernels, plugin)

    def _note(self, kernels: Iterable[KernelDef], plugin: str) -> None:
        """Keeps what else is to be known of kernels in the table."""
        for kernel in kernels:
            self._plugins[id(kernel)] = plugin
            if kernel.suits is not None:
                self._choosy.add(kernel.op)
            if kernel.covers:
                by_op = self._covering.setdefault(kernel.device, {})
                same = (*by_op.get(kernel.covers[-1].op, ()), kernel)
                by_op[kernel.covers[-1].op] = tuple(sorted(same, key=lambda k: (-len(k.covers), -k.priority)))

    def unregister(self, plugin: str) -> None:
        """Takes the kernels of a plugin out, and its generators; what was compiled with them keeps them."""

        def remaining(kernels: tuple[KernelDef, ...]) -> tuple[KernelDef, ...]:
            return tuple(k for k in kernels if self._plugins.get(id(k)) != plugin)

        with self._lock:
            table = {key: remaining(kernels) for key, kernels in self._table.items()}
            for by_op in self._covering.values():
                by_op.update({op: remaining(kernels) for op, kernels in by_op.items()})
            self._table = {key: kernels for key, kernels in table.items() if kernels}
            self._plugins = {k: name for k, name in self._plugins.items() if name != plugin}
            self._made.intersection_update(self._plugins)
            self._generators = tuple(g for g in self._generators if g[1] != plugin)
            self._generated = set()  # others are asked again for what the plugin's kernels stood in place of
            self._found = {}

    def add_generator(self, generator: Generator, plugin: str = "") -> None:
        """Adds what makes kernels for ops of which its plugin has none. Registered kernels win over generated ones."""
        with self._lock:
            self._generators = (*self._generators, (generator, plugin))
            self._generated = set()

    def _generate(self, op: str) -> None:
        """Asks the generators for kernels of an op, for the devices on which their plugins have none."""
        if op in self._generated:
            return
        definition = registry.find(op)
        with self._lock:
            table = dict(self._table)
            for generate, plugin in self._generators:
                for made in () if definition is None else generate(definition):
                    registered = self._table.get((op, made.device), ())
                    if all(self._plugins[id(k)] != plugin for k in registered):
                        _check(made)
                        new = replace(made, priority=-1)
                        table[op, new.device] = (*table.get((op, new.device), ()), new)
                        self._made.add(id(new))
                        self._note([new], plugin)
            self._table = table
            self._generated.add(op)

    def find(self, node: KernelNode) -> KernelDef | None:
        """Returns the kernel for a node of its device, or None: of those that take it, the one of highest priority.

        It has the label of the node's attr `_kernel`. While the node is placed, shapes may still decide against it.
        """
        found = None
        for kernel in self._accepting(node):
            if kernel.suits is None or not isinstance(self._suits(kernel, node), str):
                found = kernel
                break
        for listener in self.listeners:
            listener(node, found)
        return found

    def supports(self, node: KernelNode) -> Support:
        """Returns what `Device.supports` answers for a device that runs what kernels are registered for."""
        depends = False
        for kernel in self._accepting(node):
            why = None if kernel.suits is None else self._suits(kernel, node)
            if why is None:
                return None
            depends = depends or why is DEPENDS
        return DEPENDS if depends else "; ".join(self.rejections(node)) or "no kernel is registered"

    def looks_closer(self, op: str) -> bool:
        """Returns whether a kernel of the op is chosen by more than type attrs and label, on any device."""
        self._generate(op)
        return op in self._choosy

    def covering(self, device_type: str) -> Mapping[str, Sequence[KernelDef]]:
        """Returns the kernels of a device type that cover several nodes, by the op of the last: the largest first."""
        return self._covering.get(device_type, {})

    def refusal(self, kernel: KernelDef, node: KernelNode) -> Support:
        """Returns why one certain kernel does not take a node, None if it does; DEPENDS while the node is placed."""
        wanted = _wanted_label(node.attrs)
        if kernel.label != wanted:
            return f"label is {kernel.label!r}, wanted {wanted!r}"
        return kernel.accepts(node.attrs) or (None if kernel.suits is None else self._suits(kernel, node))

    def plugin_of(self, kernel: KernelDef) -> str:
        """Returns the name of the plugin that a kernel came from, "" for one that was registered without."""
        return self._plugins.get(id(kernel), "")

    def _accepting(self, node: KernelNode) -> tuple[KernelDef, ...]:
        """Returns the kernels for the node's op, type attrs and label, by falling priority."""
        op, attrs, device_type = node.op, node.attrs, node.device.type
        if op not in self._generated:
            self._generate(op)
        candidates = self._table.get((op, device_type), ())
        label = _wanted_label(attrs)
        key = (op, device_type, label, *((name, v) for name, v in attrs.items() if isinstance(v, DType | tuple)))
        try:
            return self._found[key]
        except KeyError:
            only = self._only if self._only in candidates else None
            chosen = [k for k in candidates if k.label == label] if only is None else [only]
            fits = [k for k in chosen if k.accepts(attrs) is None]
            found = self._found[key] = tuple(sorted(fits, key=lambda k: -k.priority))
            return found

    def _suits(self, kernel: KernelDef, node: KernelNode) -> Support:
        """Returns what the kernel's `suits` answers; its exceptions name plugin and kernel."""
        assert kernel.suits is not None
        if node.placing and any(v.shape == UNKNOWN_RANK for v in (*node.inputs, *node.outputs)):
            return DEPENDS
        try:
            answer = kernel.suits(node)
        except Exception as e:
            raise UnknownError(f"{self._named(kernel, node)} raised {raised(e)}", node.name) from e
        if not (answer is None or answer is DEPENDS or isinstance(answer, str)):
            raise InternalError(
                f"{self._named(kernel, node)} returned {answer!r}; None, a reason or DEPENDS is required", node.name
            )
        if answer is DEPENDS and not node.placing:
            raise InternalError(
                f"{self._named(kernel, node)} depends on shapes, all of which are known; None or a reason is required",
                node.name,
            )
        return answer

    def _named(self, kernel: KernelDef, node: KernelNode) -> str:
        plugin = f" of plugin '{self.plugin_of(kernel)}'" if self.plugin_of(kernel) else ""
        return f"{node.op} '{node.name}': suits of kernel {kernel.origin()}{plugin}"

    def rejections(self, node: KernelNode) -> list[str]:
        """Returns why each kernel of the op on the node's device type cannot be used, for messages."""
        kernels = self._table.get((node.op, node.device.type), ())
        found = ((k, self.refusal(k, node)) for k in kernels)
        return [f"{k.origin()}: {why}" for k, why in found if isinstance(why, str)]

    def device_types(self, op: str) -> list[str]:
        """Device types that have any kernel of the op."""
        self._generate(op)
        return sorted({device for name, device in self._table if name == op})

    def kernels(self, op: str | None = None) -> Sequence[KernelDef]:
        """Returns every kernel, by op and device, or those of one op, which are generated where need be."""
        if op is not None:
            self._generate(op)
        return [k for key in sorted(self._table) for k in self._table[key] if op in (None, k.op)]

    def require(self, node: KernelNode) -> KernelDef:
        """Like `find`; raises NoKernelError that lists what is registered and why it does not fit."""
        found = self.find(node)
        if found is not None:
            return found
        reasons, device_type = self.rejections(node), node.device.type
        elsewhere = [d for d in self.device_types(node.op) if d != device_type]
        raise NoKernelError(
            f"{node.op} '{node.name}': no kernel on {device_type} ({'; '.join(reasons) or 'none is registered'}); "
            f"other devices with the op: {', '.join(elsewhere) or 'none'}",
            node.name,
        )


@contextmanager
def only(registry: KernelRegistry, kernel: KernelDef) -> Iterator[None]:
    """Within the block this kernel alone runs its op on its device type, whatever its label and its priority.

    So conformance judges kernels that are chosen rarely. Sessions made before know nothing of it.
    """
    registry._only, registry._found = kernel, {}
    try:
        yield
    finally:
        registry._only, registry._found = None, {}


def of_plugins(registry: KernelRegistry, plugins: Collection[str]) -> KernelRegistry:
    """Returns a registry of what these plugins gave to another one, and of what was
    registered there without a plugin.
    """
    part, wanted = KernelRegistry(), {*plugins, ""}
    with registry._lock:
        for key, kernels in registry._table.items():
            own = [k for k in kernels if registry._plugins[id(k)] in wanted and id(k) not in registry._made]
            if own:
                part._table[key] = tuple(own)
            for kernel in own:
                part._note([kernel], registry._plugins[id(kernel)])
        part._generators = tuple(g for g in registry._generators if g[1] in wanted)
    return part


def _check(kernel: KernelDef) -> None:
    """Raises NotFoundError for an op that nobody defines, InvalidArgumentError for types or inputs that it has not.

    The package of an op may be absent, a vendor's (``Vendor>Op``) or one that could not be imported: its kernels then
    wait for nothing. Messages end with the place of the builder.
    """
    try:
        known = _checked_pattern(kernel) if kernel.covers else _type_attrs(kernel.op)
        _check_types(kernel, known)
        if kernel.inplace and known is not None:
            _check_inplace(kernel)
    except (NotFoundError, InvalidArgumentError) as e:
        code = getattr(kernel.build, "__code__", None)
        where = f"  [{code.co_filename}:{code.co_firstlineno}]" if code is not None else f"  [{kernel.origin()}]"
        raise type(e)(f"kernel {kernel.op} on {kernel.device}: {e.message}{where}") from e


def _check_types(kernel: KernelDef, known: Sequence[str] | None) -> None:
    """InvalidArgumentError for names that are no dtypes or type attrs; known: the latter, None if they are not."""
    for name, allowed in kernel.types.items():
        if known is not None and name not in known:
            raise InvalidArgumentError(f"types names {name!r}; the op's type attrs are {', '.join(known) or 'none'}")
        wrong = [d for d in allowed if d not in BY_NAME or BY_NAME[d].name != d]
        if wrong:
            raise InvalidArgumentError(f"{', '.join(map(repr, wrong))} in types; names such as 'float32' are required")


def _check_inplace(kernel: KernelDef) -> None:
    """InvalidArgumentError where an output is to take over the memory of an input that the op has not."""
    count = _input_count(kernel)
    for output, input in kernel.inplace:
        if output < 0 or input < 0 or (count is not None and input >= count):
            raise InvalidArgumentError(
                f"inplace has ({output}, {input}); pairs of an output and an input are required, and the op has "
                f"{'a list of' if count is None else count} inputs, counted from 0"
            )


def _input_count(kernel: KernelDef) -> int | None:
    """Returns the number of the inputs of the kernel's nodes; None where a list is among them."""
    if not kernel.covers:
        return registry.input_count(kernel.op)
    parts = {part.name for part in kernel.covers}
    return len({name for part in kernel.covers for name in part.inputs} - parts)


def _type_attrs(op: str) -> tuple[str, ...] | None:
    """Returns the type attrs of a kernel's op; None where that may be of a package that is absent."""
    absent = (">" in op or registry.absent_packages()) and not registry.knows(op)
    return None if absent else registry.type_attrs(op)


def _checked_pattern(kernel: KernelDef) -> tuple[str, ...] | None:
    """Returns the type attrs of the last op, as `_type_attrs` does; NotFoundError for an unknown op,
    InvalidArgumentError for a wrong pattern.
    """
    head = "covers"
    if ">" not in kernel.op or registry.find(kernel.op) is not None:
        raise InvalidArgumentError(f"{head} nodes as {kernel.op!r}; a name of its own, 'Vendor>Name', is required")
    type_attrs = [_type_attrs(part.op) for part in kernel.covers]
    names = [part.name for part in kernel.covers]
    for i, part in enumerate(kernel.covers):
        if names.count(part.name) > 1 or any(name in names[i:] for name in part.inputs):
            raise InvalidArgumentError(f"{head} part {part.name!r} twice or before what it reads; an order is required")
        if i < len(names) - 1 and not any(part.name in later.inputs for later in kernel.covers[i + 1 :]):
            raise InvalidArgumentError(f"{head} part {part.name!r}, which no later part reads; one must")
    return type_attrs[-1]


def _same_claim(a: KernelDef, b: KernelDef) -> bool:
    if a.priority != b.priority or a.label != b.label:
        return False
    both = a.types.keys() & b.types.keys()
    return all(set(a.types[t]) & set(b.types[t]) for t in both)


def _wanted_label(attrs: Mapping[str, Any]) -> str:
    return str(attrs.get("_kernel", ""))


def _label(k: KernelDef) -> str:
    return f" (label {k.label!r})" if k.label else ""


def _types(k: KernelDef) -> str:
    return ", ".join(f"{name} in {{{', '.join(allowed)}}}" for name, allowed in k.types.items()) or "all dtypes"
