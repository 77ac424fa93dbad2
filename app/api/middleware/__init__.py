"""ASGI middleware: access control, request log, HEAD requests."""
