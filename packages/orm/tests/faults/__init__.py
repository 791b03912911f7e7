"""The random walk of faults: `oracle` says what must hold, `walk` does it to a real database,
`wire` cuts connections on their way to the server.
"""
