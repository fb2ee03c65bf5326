"""Puts a known bug into a device's kernels, or into what is around them, and takes it out again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from timberframe_conformance.mutants import base
from timberframe_conformance.mutants import catalogue as catalogue  # declares all mutants
from timberframe_conformance.options import Options
from timberframe_conformance.replacements import Replacements
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry as ops
from timberframe_core.ops.definition.opdef import OpDef

PLUGIN = "conformance-mutants"
"""Whose kernels mutants are."""

_right: list[OpDef] = []
"""The definition that a mutant of a gradient replaces."""
_replaced = Replacements()
"""What a mutant of a seam replaces."""


def open_planted(options: Options) -> Target:
    """Opens the device of a run, with the mutant that the options name, if any."""
    target = open_target(options)
    if options.mutant:
        activate(target, options.mutant)
    return target


def activate(target: Target, name: str) -> None:
    """Makes a mutant the kernel, or the gradient, of its op, or puts it into its seam; another name takes all out.

    NotApplicableError where the device has no part in the seam.
    """
    target.device.kernels.unregister(PLUGIN)
    while _right:
        ops.substitute(_right.pop())
    _replaced.undo()
    mutant = base.MUTANTS.get(name)
    if mutant is not None and mutant.of_kernel:
        _register(target, mutant)
    if mutant is not None and mutant.of_seam:
        mutant.bug(_replaced, target)
    if mutant is not None and mutant.of_gradient:
        op = ops.get(mutant.op)
        _right.append(ops.substitute(dataclasses.replace(op, gradient=mutant.bug(op.gradient))))


def _register(target: Target, mutant: base.Mutant) -> None:
    device = target.device
    device.kernels.kernels(mutant.op)  # generated only while the op has no other
    device.kernels.register([base.kernel_of(mutant, device.type)], PLUGIN)


@contextmanager
def planted(target: Target, mutant: base.Mutant) -> Iterator[None]:
    """A mutant of a kernel that has no name of its own, within the block."""
    _register(target, mutant)
    try:
        yield
    finally:
        target.device.kernels.unregister(PLUGIN)


@contextmanager
def active(target: Target, name: str) -> Iterator[None]:
    """A mutant within the block."""
    try:
        activate(target, name)
        yield
    finally:
        activate(target, "")
