"""What programs consist of: ops of the registry that the devices can run, and composite functions of `tf`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Types
from timberframe_conformance.cases.shapes import elementwise_shapes
from timberframe_conformance.cases.trials import fits, own_samples, samples_of
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.mutants.base import MUTANT
from timberframe_conformance.suites.weights import sums_products
from timberframe_conformance.target import needs_kernel
from timberframe_core.dtypes import resource, variant
from timberframe_core.errors import OpError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.plugin.contracts import KernelDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

LARGEST = 600
"""Greatest total number of a sample's elements; larger samples test kernels, which have their own suites."""

PLAIN = ("float32", "float32", "float32", "float64", "int32")
"""Dtypes that are drawn more often than others."""

POPULAR = (
    "GatherV2", "ConcatV2", "MatMul", "BatchMatMulV2", "Sum", "Mean", "Max", "Reshape", "Transpose", "StridedSlice",
    "Slice", "Pack", "Unpack", "Split", "SelectV2", "AddV2", "Mul", "Sub", "RealDiv", "Maximum", "Relu", "Tanh", "Exp",
    "Softmax", "BiasAdd", "Pad", "Tile", "ExpandDims", "Cast", "AddN", "Conv2D", "MaxPool", "GatherNd", "OneHot",
    "Cumsum", "TopKV2",
)  # fmt: skip
"""Ops that ordinary graphs consist of; half of the steps are drawn from them."""

OWN = 0.9
"""How often an op, and its dtypes, are ones that the device under test has a kernel for."""


@dataclass
class Entry:
    """An op that programs may have: its dtypes, its samples, and whether it works by elements.

    types: of the device under test or the host. own: of the device under test alone.
    """

    op: OpDef
    types: list[Types]
    own: list[Types]
    samples: list[Sample]
    elementwise: bool


@dataclass(frozen=True)
class Composite:
    """A function of `tf` that makes several nodes. names: of its tensor arguments, () where they are positional.

    shapes: of the arguments where they are new; alike: all take values of one shape. low, high: of values. options:
    keyword arguments to choose from. as_list: the arguments are one list.
    """

    name: str
    names: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ((4,),)
    alike: bool = True
    low: float | None = None
    high: float | None = None
    options: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    as_list: bool = False


TWO: tuple[tuple[int, ...], ...] = ((4,), (4,))
TABLES: tuple[tuple[int, ...], ...] = ((2, 3), (2, 3))
AXIS: Mapping[str, Sequence[Any]] = {"axis": (None, 0, -1), "keepdims": (False, True)}

COMPOSITES = (
    Composite("nn.sigmoid_cross_entropy_with_logits", ("labels", "logits"), TWO),
    Composite("nn.weighted_cross_entropy_with_logits", ("labels", "logits", "pos_weight"), ((4,), (4,), ())),
    Composite("nn.softmax_cross_entropy_with_logits", ("labels", "logits"), TABLES, low=0.0),
    Composite("nn.l2_loss"),
    Composite("nn.l2_normalize", options={"axis": (0, -1)}),
    Composite("nn.moments", shapes=((2, 3),), options={"axes": ((0,), (0, 1), (-1,)), "keepdims": (False, True)}),
    Composite("nn.log_softmax", shapes=((2, 3),)),
    Composite("nn.softmax", shapes=((2, 3),), options={"axis": (-1, 0)}),
    Composite("nn.batch_normalization", ("x", "mean", "variance", "offset", "scale"), ((2, 3), (3,), (3,), (3,), (3,)),
              low=0.1, options={"variance_epsilon": (1e-3,)}),
    Composite("nn.swish"),
    Composite("nn.relu6"),
    Composite("nn.crelu"),
    Composite("nn.bias_add", ("value", "bias"), ((2, 3), (3,)), alike=False),
    Composite("nn.embedding_lookup", ("params", "ids"), ((5, 2), (3,)), alike=False),
    Composite("math.log_sigmoid"),
    Composite("math.softplus"),
    Composite("clip_by_value", options={"clip_value_min": (-1.0,), "clip_value_max": (0.5,)}),
    Composite("clip_by_norm", options={"clip_norm": (0.5, 100.0)}),
    Composite("reduce_logsumexp", options=AXIS),
    Composite("math.reduce_std", options=AXIS),
    Composite("math.reduce_variance", options=AXIS),
    Composite("math.reduce_euclidean_norm", options=AXIS),
    Composite("reduce_mean", options=AXIS),
    Composite("reduce_prod", options=AXIS),
    Composite("reduce_max", options=AXIS),
    Composite("norm", options={"ord": ("euclidean", 1, np.inf)}),
    Composite("math.divide_no_nan", (), TWO),
    Composite("math.squared_difference", (), TWO),
    Composite("math.xlogy", (), TWO, low=0.0),
    Composite("pow", (), TWO, low=0.1),
    Composite("add_n", (), TWO, as_list=True),
    Composite("concat", (), TABLES, options={"axis": (0, 1, -1)}, as_list=True),
    Composite("stack", (), TWO, options={"axis": (0, -1)}, as_list=True),
    Composite("unstack", (), ((2, 3),), alike=False, options={"axis": (0, -2), "num": (2,)}),
    Composite("sort", options={"direction": ("ASCENDING", "DESCENDING")}),
    Composite("argsort", options={"stable": (True,)}),
    Composite("tensordot", (), ((2, 3), (3, 2)), alike=False, options={"axes": (1,)}),
    Composite("cumsum", options={"exclusive": (False, True), "reverse": (False, True)}),
    Composite("matmul", (), ((2, 3), (3, 2)), alike=False),
    Composite("losses.huber_loss", ("labels", "predictions"), TWO),
    Composite("losses.log_loss", ("labels", "predictions"), TWO, low=0.1, high=0.9),
    Composite("losses.absolute_difference", ("labels", "predictions"), TWO),
    Composite("losses.mean_squared_error", ("labels", "predictions"), TWO),
    Composite("losses.hinge_loss", ("labels", "logits"), TWO),
    Composite("losses.sigmoid_cross_entropy", ("multi_class_labels", "logits"), TABLES),
    Composite("stop_gradient"),
    Composite("identity"),
    Composite("Print", options={"data": ((),), "first_n": (0,)}),  # a host op, which prints nothing
)  # fmt: skip
"""Functions whose gradients and shapes come together from several ops. Vendors' ops come from the registry."""


class Pool:
    """The ops that the device under test or the host can run. host: the host's Target, None where it is the same.

    ops: of the device's kernels only those of these ops are drawn; all where empty.
    """

    def __init__(self, target: Target, host: Target | None = None, ops: tuple[str, ...] = ()) -> None:
        self.target = target
        self.host = host
        self.ops = ops
        self._entries: dict[str, Entry | None] = {}
        self.names = [op.name for op in registry.all_ops() if takes_part(op)]

    @functools.cached_property
    def own(self) -> list[str]:
        """The ops that the device under test has kernels for."""
        asked = [n for n in self.names if n in self.ops] if self.ops else self.names
        return [n for n in asked if needs_kernel(registry.get(n)) and (e := self.entry(n)) is not None and e.own]

    def ask(self) -> None:
        """Asks the device about every op, which takes a second or two: before time is measured."""
        assert self.own is not None

    @functools.cached_property
    def patterns(self) -> list[KernelDef]:
        """The kernels of the device under test that run several nodes, but for known bugs that are not active."""
        by_op = self.target.device.kernels.covering(self.target.device.type)
        return [k for kernels in by_op.values() for k in kernels if not k.op.startswith(MUTANT)]

    @functools.cached_property
    def products(self) -> list[str]:
        """The device's ops that sum products, one factor of which may be weights."""
        return [n for n in self.own if sums_products(registry.get(n))]

    @functools.cached_property
    def is_small(self) -> bool:
        """Whether the device has kernels for less than half of the ops: then more steps are single nodes."""
        return len(self.own) < len(self.names) / 2

    def draw(self, rng: np.random.Generator) -> Entry | None:
        """Returns a random op, mostly one of the device's; None if the devices have no kernel of it."""
        names = self.own if self.own and rng.random() < OWN else self.names
        popular = [n for n in POPULAR if n in set(names)]
        names = popular if popular and rng.random() < 1 / 2 else names
        return self.entry(names[int(rng.integers(len(names)))])

    def entry(self, name: str) -> Entry | None:
        """Returns what is known of an op."""
        if name not in self._entries:
            self._entries[name] = self._make(registry.get(name))
        return self._entries[name]

    def on_device(self, op: OpDef, types: Types) -> bool:
        """Returns whether the device under test has a kernel."""
        return self.target.supports(op, types) is None

    def _make(self, op: OpDef) -> Entry | None:
        all_types = [t for group in combinations(op).values() for t in group]
        own = [t for t in all_types if self.on_device(op, t)]
        types = [t for t in all_types if t in own or self._on_host(op, t)]
        samples = [s for s in samples_of(op) if is_small(s) and not s.implementation_defined]
        if not types or not any(fits(op, s, t) for s in samples for t in types):
            return None
        own = [t for t in own if any(fits(op, s, t) for s in samples)]
        attrs = {n: a.default for n, a in op.attrs.items() if not a.required}
        return Entry(op, types, own, samples, bool(elementwise_shapes(op, attrs)))

    def _on_host(self, op: OpDef, types: Types) -> bool:
        return self.host is not None and self.host.supports(op, types) is None


def takes_part(op: OpDef) -> bool:
    """Returns whether programs may have the op: it is a function of its inputs, and has a reference and samples."""
    if op.stateful or op.stream or op.reference is None or op.reads or op.updates or not op.outputs:
        return False
    if any(a.is_ref or a.dtype in (resource, variant) for a in (*op.inputs, *op.outputs)):
        return False
    try:
        return bool(own_samples(op))
    except OpError:  # a vendor's op with invalid samples, which `conformance run` reports
        return False


def is_small(sample: Sample) -> bool:
    """Returns whether a sample's inputs have few elements."""
    args = [a for x in sample.inputs for a in ([x] if isinstance(x, Arg) else x)]
    return sum(int(np.prod(np.shape(a.values) if a.values is not None else a.shape)) for a in args) <= LARGEST
