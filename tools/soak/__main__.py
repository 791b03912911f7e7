"""`hatch run soak`: what the server holds and keeps under load, slow clients, crashes and saves.

    python tools/soak [--scale 1] [--only R-16] [--write]

`--scale 0.05` is a twentieth of the requests, connections and saves. `--write` puts the figures
into `docs/project/reliability.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

from rows import ROWS, Figure

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/project/reliability.md"
BEGIN, END = "<!-- soak -->\n", "<!-- end of soak -->\n"


def main() -> int:
    """Run the rows, print the figures, write them where asked; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", choices=ROWS)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found: dict[str, list[Figure]] = {}
    began = time.monotonic()
    for number, (title, run) in ROWS.items():
        if options.only in {None, number}:
            print(f"{number} {title}", flush=True)
            found[number] = run(options.scale)
            for figure in found[number]:
                print(f"  {figure}{'' if figure.holds else '   MISSED'}", flush=True)
    if options.write:
        write(found, options.scale, time.monotonic() - began)
    return int(any(not figure.holds for figures in found.values() for figure in figures))


def write(found: dict[str, list[Figure]], scale: float, seconds: float) -> None:
    """Put the figures onto the page on reliability."""
    cores = os.cpu_count()
    lines = [
        f"`hatch run soak --scale {scale:g} --write`, {seconds:.0f} seconds on {cores} cores, "
        f"{platform.system()}, CPython {platform.python_version()}.\n",
        "| Row | Figure | Measured | Bar |\n|---|---|---:|---:|",
    ]
    for number, figures in found.items():
        for position, figure in enumerate(figures):
            first = f"{number} {ROWS[number][0]}" if position == 0 else ""
            sign = "at least" if figure.least else "at most"
            missed = "" if figure.holds else " (missed)"
            bar = f"{sign} {figure.bar:,.10g} {figure.unit}".strip()
            lines.append(f"| {first} | {figure.name} | {figure.shown}{missed} | {bar} |")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    text = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
