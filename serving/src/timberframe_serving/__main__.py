"""Serves models: ``python -m timberframe_serving --model_base_path=DIR --port=8500 --rest_api_port=8501``."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Sequence

from timberframe_core.errors import OpError
from timberframe_serving import flags
from timberframe_serving.logs import set_up
from timberframe_serving.replicas import on_ray, service_of
from timberframe_serving.server import Server

_SWITCH_SECONDS = 0.0005
"""How long a thread that loads a version keeps the interpreter while requests wait; Python's own is ten times that."""


async def serve(given: Sequence[str] | None = None) -> None:
    """Serves with these flags, by default those of the command line, until a signal ends it."""
    found = flags.parse(given)
    set_up(found.log_level)
    await Server(service_of(found), flags.hosting(found)).run()


def main() -> None:
    """Runs the server on uvloop where there is one."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # modules live as long as the server: collections need not look at them
    try:
        if flags.parse().ray:
            on_ray(sys.argv[1:])
        else:
            _run()
    except OpError as error:
        raise SystemExit(f"timberframe_serving: {error}") from None


def _run() -> None:
    try:
        import uvloop
    except ImportError:  # Windows has none
        asyncio.run(serve())
    else:
        uvloop.run(serve())


if __name__ == "__main__":
    main()
