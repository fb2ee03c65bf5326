"""RecordInput: each node has a reader of its own, which goes on from run to run."""

from __future__ import annotations

import numpy as np

from timberframe.records.reading import RecordReader
from timberframe_core.plugin.host_ops import HostCall, host_op


@host_op("RecordInput")
def _read(call: HostCall) -> list[np.ndarray]:
    reader = call.resources.get_or_make(f"record reader {call.path}", lambda: RecordReader(call.attrs))
    return [reader.batch(call.cancel.check)]
