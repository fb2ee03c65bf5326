"""What the ops on datasets have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape

NO_GRADIENT = NotDifferentiable("what a dataset holds is no function of tensors")
ELEMENTS = ("output_types: list(type) >= 1", "output_shapes: list(shape) >= 1")
METADATA = "metadata: string = ''"


def define(name: str, **definition: Any) -> None:
    """Defines an op on datasets or iterators."""
    define_op(name, gradient=NO_GRADIENT, **definition)


def component_shapes(c: InferenceContext) -> list[Shape]:
    """Returns the shapes that the attrs say of the components of an element."""
    types, shapes = c.attrs["output_types"], c.attrs["output_shapes"]
    if len(types) != len(shapes):
        raise c.error(f"output_shapes has {len(shapes)} shapes for {len(types)} output_types; each needs one")
    return list(shapes)


def define_dataset(
    name: str,
    doc: str,
    inputs: Sequence[str] = (),
    attrs: Sequence[str] = (),
    *,
    elements: bool = True,
    stateful: bool = False,
    metadata: bool = True,
) -> None:
    """Defines an op whose output is a dataset. elements: it has the attrs that say what its elements are."""
    every = [*attrs, *(ELEMENTS if elements else ()), *((METADATA,) if metadata else ())]
    define(
        name,
        inputs=inputs,
        outputs=["handle: variant"],
        attrs=every,
        doc=doc,
        shape=lambda c: [()],
        stateful=stateful,
    )
