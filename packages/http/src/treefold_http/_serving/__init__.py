"""The ASGI protocol: a WebSocket from handshake to log line, and the lifespan."""
