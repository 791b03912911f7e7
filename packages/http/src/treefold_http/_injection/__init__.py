"""Parameters of handlers: markers, their sources, providers, and the compiler to one coroutine."""
