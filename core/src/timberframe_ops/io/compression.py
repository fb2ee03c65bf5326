"""The op that decompresses strings: of TensorFlow's decode_compressed_op."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

from timberframe_core.errors import DataLossError
from timberframe_core.ops.definition.opdef import Attrs, NotDifferentiable, define_op
from timberframe_ops.strings.editing import each

_WAYS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}


def _decompressed(attrs: Attrs, texts: Any) -> Any:
    kind = attrs["compression_type"]

    def of(text: bytes) -> bytes:
        try:
            return _WAYS[kind](text)
        except (OSError, EOFError, zlib.error) as e:
            raise DataLossError(f"{len(text)} bytes do not decompress ({e}); data of {kind} is required") from None

    return each(of, texts)


define_op(
    "DecodeCompressed",
    inputs=("bytes: string",),
    outputs=("output: string",),
    attrs=("compression_type: {'', 'ZLIB', 'GZIP'} = ''",),
    doc="The strings decompressed.",
    shape=lambda c: [c.shapes[0]],
    reference=_decompressed,
    gradient=NotDifferentiable("strings have no derivative"),
    on_host=True,
)
