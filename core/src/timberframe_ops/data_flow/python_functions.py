"""Ops that call functions of the Python program."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import NotDifferentiable, define_op

for _name, _stateful in (("PyFunc", True), ("PyFuncStateless", False)):
    define_op(
        _name,
        inputs=["input: Tin"],
        outputs=["output: Tout"],
        attrs=["token: string", "Tin: list(type) >= 0", "Tout: list(type) >= 0"],
        doc="What the Python function that is known by the token returns for NumPy arrays of the inputs."
        + ("" if _stateful else " Equal inputs give equal outputs, and nothing else happens."),
        shape=lambda c: [None] * len(c.attrs["Tout"]),
        gradient=NotDifferentiable("a function of the program has no gradient that is known"),
        on_host=True,
        stateful=_stateful,
    )
