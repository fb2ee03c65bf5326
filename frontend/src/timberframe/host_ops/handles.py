"""What the handles of host ops mean."""

from __future__ import annotations

from typing import TypeVar

from timberframe_core.errors import FailedPreconditionError
from timberframe_core.plugin.host_ops import HostCall

T = TypeVar("T")


def resource_of(call: HostCall, kind: type[T]) -> T:
    """The resource of a kind that the call's handle means; FailedPreconditionError where it was not made."""
    found = call.resources.find(call.handle())
    if not isinstance(found, kind):
        raise call.error(f"{call.handle()} does not exist; its handle must be made first", FailedPreconditionError)
    return found
