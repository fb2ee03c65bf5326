"""The version of CuPy whose calls are emulated."""

import os

__version__ = os.environ.get("EMULATED_CUPY", "14.2.0")
