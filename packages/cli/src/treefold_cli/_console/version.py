"""The output of `--version`.

The framework is not imported: versions come from the metadata of installed packages.
"""

from treefold_cli.__about__ import __version__


def format_version_line() -> str:
    """Name the installed version: of the umbrella where there is one, else of this package."""
    from importlib.metadata import PackageNotFoundError, version  # 25 ms only `--version` needs

    try:
        return f"treefold {version('treefold')}"
    except PackageNotFoundError:
        return f"treefold-cli {__version__}"
