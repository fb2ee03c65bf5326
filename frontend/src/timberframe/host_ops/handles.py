"""What the handles of host ops mean."""

from __future__ import annotations

from typing import TypeVar

from timberframe_core.errors import FailedPreconditionError
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.runtime.shared_resources import Elsewhere

T = TypeVar("T")


def resource_of(call: HostCall, kind: type[T], index: int = 0) -> T:
    """Returns the resource of a kind that a handle of the call means; FailedPreconditionError where it was not made."""
    key = call.handle(index)
    found = call.resources.find(key)
    if isinstance(found, Elsewhere):
        raise call.error(
            f"{key} is in {found.device.spec}, since it has a shared_name; only its own ops can use it there",
            FailedPreconditionError,
        )
    if not isinstance(found, kind):
        raise call.error(f"{key} does not exist; its handle must be made first", FailedPreconditionError)
    return found
