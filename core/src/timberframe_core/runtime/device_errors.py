"""What devices report, at once or late, as errors that name the node, the device and the line of the program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from timberframe_core.compiler import specialise
from timberframe_core.compiler.ir import Node, sets_variable
from timberframe_core.compiler.plan import Plan
from timberframe_core.compiler.state import uninitialized
from timberframe_core.errors import FailedPreconditionError, InternalError, OpError, UnknownError
from timberframe_core.failures import raised
from timberframe_core.plugin.contracts import Device, LateError, Pending, RunContext
from timberframe_core.plugin.waiting import check_all

_WHICH_NODE = "run with tf.RunOptions(trace=True) to learn which node"


class DeviceWork:
    """What a device is doing; its errors name the device and where their node was made."""

    def __init__(self, pending: Pending, device: Device, plan: Plan, context: RunContext) -> None:
        self.pending, self.device, self.plan, self.context = pending, device, plan, context
        self.done = pending.done
        self.wait = getattr(pending, "wait", None)
        self.start = time.perf_counter_ns()

    def result(self) -> Any:
        try:
            return self.pending.result()
        except Exception as e:
            raise of_device(e, self.plan.program.nodes, self.device, self.context) from cause(e)


def raise_late_errors(errors: Sequence[LateError], plan: Plan, context: RunContext, wait: bool = True) -> None:
    """Raises errors that asynchronous devices report late; wait: also those of what is still under way."""
    try:
        if wait:
            check_all(errors, context.cancel)
            return
        for error in errors:
            error.check(context.cancel, wait=False)
    except Exception as e:
        nodes = plan.program.nodes
        failed = next((x.device for x in errors if x.failed), None)
        if failed is None:  # the run was cancelled
            raise
        home = next((n.device for n in nodes if isinstance(e, OpError) and n.name == e.node), None)
        raise of_device(e, nodes, home or failed, context) from cause(e)


def of_device(error: Exception, nodes: Sequence[Node], device: Device, context: RunContext) -> OpError:
    """Returns what a device reports while it runs these nodes, as the user gets it.

    It has device and line where the node is known; where an asynchronous device names none, it says how to learn it.
    """
    if not isinstance(error, OpError):
        error = UnknownError(f"device {device.spec} failed: {raised(error)}")
    if error is context.cancel.reason:
        return error
    if isinstance(error, UnknownError | InternalError) and error.node is None and _runs_ahead(device, context):
        return error if str(error).endswith(_WHICH_NODE) else type(error)(f"{error}; {_WHICH_NODE}")
    return specialise.located_on(_at_its_reader(error, nodes), nodes, device)


def cause(error: Exception) -> BaseException | None:
    """Returns the cause of the error that `of_device` makes of this one."""
    return error.__cause__ if isinstance(error, OpError) else error


def _runs_ahead(device: Device, context: RunContext) -> bool:
    """Returns whether a device may have been given other nodes when the work of one fails."""
    return device.asynchronous and context.mode == "fast" and context.trace is None


def _at_its_reader(error: OpError, nodes: Sequence[Node]) -> OpError:
    """Returns what a device says of a variable without a value, at the first node that needs the
    value; others as they are.
    """
    for node in nodes if isinstance(error, FailedPreconditionError) else ():
        for handle in () if sets_variable(node.op) else node.inputs:
            if handle.node.variable is not None and handle.node.variable == error.node:
                return specialise.located(uninitialized(node, handle), node)
    return error
