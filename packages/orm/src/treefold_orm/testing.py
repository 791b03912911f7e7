"""For tests: `sandbox` undoes what a test did. The pytest fixture `db` is made of it."""

from treefold_orm._sandbox import sandbox as sandbox

__all__ = ["sandbox"]
