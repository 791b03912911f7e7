"""For servers that load an application by name: `treefold.asgi:app`, or `--factory ...:create_app`.

The application root is `TREEFOLD_APP_DIR`, or the working directory.
"""

from treefold_http import create_app

__all__ = ["app", "create_app"]

app = create_app()
