"""The server's gRPC side: the services of all protocols over gRPC."""
