"""The facts of routes: what a lock of the API holds, made of the descriptions of its routes."""
