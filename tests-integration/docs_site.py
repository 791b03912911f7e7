"""The site of the documentation, built as a release builds it, and served as its host does."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "/treefold/"
"""The path below which the host serves the site of this project."""


def load_tool(name: str) -> ModuleType:
    """Import a program of `tools/docs`."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / f"tools/docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_site(root: Path) -> Path:
    """Build the site in a folder, with the generated pages; return the folder of the site."""
    docs = root / "docs"
    generated = shutil.ignore_patterns("reference", ".cache")
    shutil.copytree(ROOT / "docs", docs, ignore=generated)
    shutil.copytree(ROOT / "tools/docs/theme", root / "tools/docs/theme")
    load_tool("reference").write_reference(docs / "reference")
    load_tool("changelogs").write_changelogs(docs / "reference")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "-f", "docs/zensical.toml", "--strict"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = root / "dist" / "site"
    load_tool("site").finish_site(docs, docs / "site", site)
    return site


def publish_site(site: Path, folder: Path, *versions: str) -> Path:
    """Publish a site as that of some releases; return the folder that a host serves."""
    for version in versions:
        archive = folder / "archives" / f"treefold-v{version}" / "site.tar.gz"
        archive.parent.mkdir(parents=True)
        with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
            packed.add(site, ".")
    public = folder / "public"
    public.mkdir()
    load_tool("site").join_releases(folder / "archives", public)
    return public


class PagesHost(SimpleHTTPRequestHandler):
    """A host of static files below a prefix, with `404.html` for what is not there."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(PREFIX.rstrip("/")))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        body = Path(self.directory, "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def serve_site(public: Path) -> Generator[str]:
    """Serve a folder on a free port; yield the origin."""
    handler = partial(PagesHost, directory=str(public))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
