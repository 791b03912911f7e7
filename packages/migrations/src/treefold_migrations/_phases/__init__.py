"""Phases of a rollout: which part of an operation the running release bears."""
