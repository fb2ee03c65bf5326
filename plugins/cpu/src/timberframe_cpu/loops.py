"""Loops in C over the elements of a source: what the kernels run that are made of the SDK's table of sources.

A loop is a function of type ``tf_loop`` (csrc/common/broadcast.h). The build makes those of the table's own ops; others
are compiled when they are first needed. The build imports this module alone, without the rest of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from timberframe_sdk.elementwise.sources import ALL_TYPES, SHORT_FLOATS, Source

OPERANDS = 3  # of one kernel; those of csrc/common/broadcast.h
BLOCK = 512  # elements of an operand that is repeated


def loop_source(
    name: str, source: Source, operands: Sequence[str], result: str, attrs: Mapping[str, str] | None = None
) -> str:
    """Returns the loop `name` for operands and a result of these dtypes; "" where there is none.

    attrs: their values as C code. Without them the loop reads them: they are its last operand.
    """
    types = source.attr_types() if attrs is None else {}
    attrs = {name: f"attr_{name}" for name in types} if attrs is None else attrs
    ids = range(len(operands))
    term = source.term(operands[-1], [f"a{k}" for k in ids], attrs)
    if not term:
        return ""
    stored = [_storage(dtype) for dtype in operands]
    lines = [f"void {name}(int64_t count, const void *const *in, const int64_t *step, void *out) {{"]
    for at, (attr, kind) in enumerate(types.items()):
        word = f"((const int64_t *)in[{len(operands)}])[{at}]"
        lines.append(f"  const {kind} {attrs[attr]} = {f'tf_double({word})' if kind == 'double' else word};")
    for k in ids:
        lines += [
            f"  {stored[k]} r{k}[{BLOCK}];",
            f"  for (int64_t i = 0; !step[{k}] && i < {BLOCK} && i < count; i++)",
            f"    r{k}[i] = *(const {stored[k]} *)in[{k}];",
        ]
    lines += [
        f"  for (int64_t begin = 0; begin < count; begin += {BLOCK}) {{",
        f"    const int64_t size = count - begin < {BLOCK} ? count - begin : {BLOCK};",
        *(f"    const {stored[k]} *p{k} = step[{k}] ? (const {stored[k]} *)in[{k}] + begin : r{k};" for k in ids),
        f"    {_storage(result)} *z = ({_storage(result)} *)out + begin;",
        "    TF_ELEMENTS for (int64_t i = 0; i < size; i++) {",
        *(f"      const {ALL_TYPES[dtype]} a{k} = {_load(dtype, f'p{k}[i]')};" for k, dtype in enumerate(operands)),
        f"      const {ALL_TYPES[result]} v = {term};",
        f"      z[i] = {_store(result, 'v')};",
        "    }",
        "  }",
        "}",
    ]
    return "\n".join([*lines, ""])


def includes(source: Source) -> str:
    """Returns what comes before the loops of a source."""
    headers = ["elementwise", "math/half", *([f"math/{source.header}"] if source.header else [])]
    lines = [
        *(f"#include <timberframe/{header}.h>" for header in headers),
        *([source.functions] * bool(source.functions)),
    ]
    return "\n".join([*lines, ""])


def _storage(dtype: str) -> str:
    return "uint16_t" if dtype in SHORT_FLOATS else ALL_TYPES[dtype]


def _load(dtype: str, element: str) -> str:
    return f"tf_float32_from_{dtype}({element})" if dtype in SHORT_FLOATS else element


def _store(dtype: str, value: str) -> str:
    return f"tf_{dtype}_from_float32({value})" if dtype in SHORT_FLOATS else value
