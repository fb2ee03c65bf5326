"""What kernels are launched with: sources, the numbers of their work-items, and the types of their indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from timberframe_sdk import KernelNode, Launch, Launcher, OpError

GROUP = 256
"""Work-items of a group where a kernel does not ask for something else."""
MOST_ITEMS = 1 << 22
"""Work-items of a launch; each takes several of more elements."""
MOST_GROUPS = 65535
"""Groups in the second and third dimension of a launch: a limit of CUDA (CUDA C++ Programming Guide)."""


@dataclass(frozen=True)
class Source:
    """A source and the macros that are defined before it."""

    text: str
    defines: tuple[tuple[str, str | int], ...] = ()

    @classmethod
    def file(cls, name: str, **defines: str | int) -> Source:
        """Returns the file ``timberframe/accelerator/<name>``, included with these macros defined."""
        return cls(f"#include <timberframe/accelerator/{name}>\n", tuple(sorted(defines.items())))

    def whole(self) -> str:
        """Returns the text after its defines."""
        return "".join(f"#define {name} {value}\n" for name, value in self.defines) + self.text


class Function(Protocol):
    """A compiled kernel: enqueues itself over `items` work-items (by dimension) in groups of `group`."""

    def __call__(self, items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
        """arguments: tensors, and NumPy scalars of the kernel's parameter types."""


@dataclass(frozen=True)
class Limits:
    """What sizes of work a device takes. Sizes of groups are numbers of work-items; shared_bytes: of a group's memory.

    elementwise_group_size: where a group is a CPU's thread, more work-items cost less. reduction_group_size: a power of
    two up to 256; where a group is a CPU's thread, as many as its vectors have elements, as the group then reads memory
    in order. access_bytes: what a work-item best reads and writes at once; 0 where neighbouring work-items that each
    take one element, however small, are as good.
    """

    max_group_size: int = 256
    shared_bytes: int = 32 * 1024
    float64: bool = True
    elementwise_group_size: int = GROUP
    reduction_group_size: int = 256
    access_bytes: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


def needs_float64(node: KernelNode) -> str | None:
    """`suits` of kernels that compute in float64, whatever the node's dtypes are."""
    device: Any = node.device
    return None if device.limits.float64 else "it computes in float64, which the device lacks"


def spread(count: int, group: int = GROUP) -> tuple[tuple[int], tuple[int]]:
    """Work-items and group size for a kernel that goes over `count` elements by TF_EACH."""
    return (max(group, min(-(-count // group) * group, MOST_ITEMS)),), (group,)


def spread_rows(length: int, rows: int, lanes: int = GROUP) -> tuple[tuple[int, int], tuple[int, int]]:
    """Work-items and group size for a kernel whose first dimension goes over rows of `length`, its second over rows.

    lanes: `Limits.reduction_group_size` where finding a row is costly: a group that is a thread goes over a whole row.
    """
    if lanes < GROUP:
        return (lanes, max(1, min(rows, MOST_GROUPS))), (lanes, 1)
    x = min(GROUP, 1 << max(length - 1, 0).bit_length())
    y = GROUP // x
    wide = max(x, min(-(-length // x) * x, MOST_ITEMS))
    return (wide, max(1, min(-(-rows // y), MOST_ITEMS // (wide * y), MOST_GROUPS)) * y), (x, y)


def index_name(*counts: int) -> str:
    """Returns what INDEX must be for these numbers of elements, so that indices do not overflow: int32 or int64."""
    return "int64" if max(counts, default=0) + MOST_ITEMS >= 2**31 else "int32"


def index_type(*counts: int) -> type[np.int32] | type[np.int64]:
    """Returns the scalar type of a kernel's tf_index arguments for these numbers of elements."""
    return np.int64 if index_name(*counts) == "int64" else np.int32


def failing(launch: Launcher, *reasons: tuple[type[OpError], str]) -> Launch:
    """Returns a launch whose kernel calls tf_report; reason 1 is the first pair: the error, and
    its message with {0} to {3}.
    """
    return Launch(launch, reasons)
