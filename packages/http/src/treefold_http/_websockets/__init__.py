"""WebSockets as handlers hold them, and rooms of many, in one process or through Redis."""
