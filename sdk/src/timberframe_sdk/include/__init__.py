"""The C header for native kernels, ``timberframe/kernel.h``."""

from importlib.resources import files


def include_directory() -> str:
    """Returns the directory to give to a C compiler with -I."""
    return str(files(__name__))
