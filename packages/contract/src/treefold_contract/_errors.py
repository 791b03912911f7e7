"""The one exception class of the package."""


class LockError(ValueError):
    """A text that is not a lock, or facts that cannot be compared."""
