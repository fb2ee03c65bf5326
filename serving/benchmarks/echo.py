"""Bare servers that give back what they get, as upper bounds: ``python echo.py http|grpc PORT``; needs starlette."""

from __future__ import annotations

import sys
from typing import Any

import grpc
import uvicorn
import uvloop


def http(port: int) -> None:
    """Serves a Starlette application on uvicorn."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def echo(request: Request) -> Response:
        return Response(await request.body(), media_type="application/json")

    application = Starlette(routes=[Route("/echo", echo, methods=["POST"])])
    uvicorn.run(application, port=port, log_level="warning", access_log=False)


async def rpc(port: int) -> None:
    """Serves a method on grpc.aio."""

    async def echo(request: bytes, context: Any) -> bytes:
        return request

    server = grpc.aio.server()
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo.Echo", handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    if sys.argv[1] == "http":
        http(int(sys.argv[2]))
    else:
        uvloop.run(rpc(int(sys.argv[2])))
