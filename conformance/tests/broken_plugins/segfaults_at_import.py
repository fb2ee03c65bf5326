"""Reads address 0 when it is imported."""

import ctypes

ctypes.string_at(0)
