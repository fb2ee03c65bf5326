"""Packages that few programs need, which come with an extra: `pip install 'timberframe[images]'`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from timberframe_core.errors import UnavailableError


class MissingPackageError(UnavailableError, ModuleNotFoundError):
    """A package that comes with an extra of timberframe is not installed."""


@contextmanager
def extra(name: str, user: str) -> Iterator[None]:
    """Turns a failed import in the block into a MissingPackageError, which says what to install.

    name: the extra that brings what is imported. user: what needs it, such as "tf.flags" or "DecodePng 'node'".
    """
    try:
        yield
    except ModuleNotFoundError as e:
        package = str(e.name).partition(".")[0]
        raise MissingPackageError(
            f"{user}: package {package} is not installed; `pip install 'timberframe[{name}]'` installs what is required"
        ) from None
