"""Writes the C source of the extension module: `generate.py native.cdef output.c`."""

import sys
from pathlib import Path

from cffi import FFI

builder = FFI()
builder.cdef(Path(sys.argv[1]).read_text())
builder.set_source("timberframe_cpu._native", '#include "runner/runner.h"')
builder.emit_c_code(sys.argv[2])
