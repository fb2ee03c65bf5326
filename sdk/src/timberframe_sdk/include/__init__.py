"""The C header for native kernels, ``timberframe/kernel.h``."""

from importlib.resources import files


def include_directory() -> str:
    """The directory to give to a C compiler with -I."""
    return str(files(__name__))
