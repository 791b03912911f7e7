"""The request log: the public names of `treefold_logging`."""

from treefold_logging import flush, get_logger, mask

__all__ = ["flush", "get_logger", "mask"]
