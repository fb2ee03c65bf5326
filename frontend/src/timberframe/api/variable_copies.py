"""What TensorFlow lets a program say about copies of variables in several processes."""

from __future__ import annotations

import enum


class VariableSynchronization(enum.Enum):
    """When copies of a variable are synchronised; one process has one copy, so all mean the same."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates of copies of a variable are combined; one process has one copy, so all mean the same."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
