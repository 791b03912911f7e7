"""The version of this distribution, written once."""

__version__ = "0.1.0"
