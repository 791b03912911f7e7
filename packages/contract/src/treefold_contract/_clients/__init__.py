"""Clients of an API, written from its lock alone: types, and a runtime that is the same for all."""
