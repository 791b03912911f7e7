"""Write `docs/reference/changelog.md`: the changelogs of all packages on one page.

`python tools/docs/changelogs.py [FOLDER]`. Headings move one level down, below the package.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write_changelogs(folder: Path) -> Path:
    """Write the page; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["# Changelog\n\nEach package has versions of its own.\n"]
    for file in sorted(ROOT.glob("packages/*/CHANGELOG.md")):
        text = file.read_text(encoding="utf-8").strip()
        title, _, rest = text.partition("\n")
        name = title.rpartition(" ")[2]
        below = re.sub(r"^(#+ )", r"#\1", rest, flags=re.MULTILINE)
        parts.append(f"## {name}\n{below}\n")
    page = folder / "changelog.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write_changelogs(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/reference"))
