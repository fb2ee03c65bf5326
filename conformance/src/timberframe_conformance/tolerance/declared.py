"""What the profile of the device under test declares, for all that works out how far off a result may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from timberframe_conformance.profile import Profile
from timberframe_core.ops.definition.formats import Format
from timberframe_core.ops.definition.limits import smallest

_in_force: ContextVar[Profile] = ContextVar("timberframe_conformance_profile", default=Profile())  # noqa: B039  # frozen


@contextmanager
def in_force(profile: Profile) -> Iterator[None]:
    """Lets results of the block be judged as a profile declares."""
    token = _in_force.set(profile)
    try:
        yield
    finally:
        _in_force.reset(token)


def current() -> Profile:
    """Returns the profile in force."""
    return _in_force.get()


def declared_ulp(op: str, dtype: np.dtype) -> float | None:
    """Returns the limit in ULP that the profile declares for an op's outputs of a dtype,
    None where it declares none.
    """
    found = current().tolerance(op, dtype.name)
    return None if found is None else found.ulp


def floor(form: Format) -> float:
    """Returns how far off a result may be in a format however small it is: each rounding may lose that much."""
    return form.smallest_normal if current().flushes_subnormals else smallest(form)
