"""The server's HTTP side: one ASGI application for all protocols over HTTP."""
