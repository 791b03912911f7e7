"""For tests: `hold_jobs` keeps what is enqueued in place of running it. The pytest fixture `outbox`
is made of it.
"""

from treefold_jobs._outbox import HeldJob as HeldJob, Outbox as Outbox, hold_jobs as hold_jobs

__all__ = ["HeldJob", "Outbox", "hold_jobs"]
