"""Results against their evaluation by references in float64."""

from __future__ import annotations

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_core.shapes import compatible, format_shape


@oracle("truth")
def truth(s: Subject) -> int:
    """Each result is the true one, within the limits that follow from the ops' declared accuracies."""
    count = 0
    for i, (got, e, t) in enumerate(zip(s.first, s.expected, s.built.fetches, strict=True)):
        if not compatible(t.static_shape, np.shape(got)):
            raise CaseFailedError(
                f"{s.result(i)} has shape {list(np.shape(got))}; the graph promised {format_shape(t.static_shape)}"
            )
        if e is None:
            continue
        message = e.mismatch(got)
        if message:
            raise CaseFailedError(f"{s.result(i)}: {message}")
        count += bool(e.determined.any())
    return count
