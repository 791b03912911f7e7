"""Tables and plots of ratios, as Markdown and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

ROW, LABEL, WIDTH = 22, 130, 560
OURS, OTHERS = "#1769aa", "#9aa5b1"

Figures = Mapping[str, Mapping[str, float]]
"""Row to column to figure."""


def table(figures: Figures, columns: Sequence[str], unit: str) -> str:
    """Return a Markdown table; the best figure of each column is bold, a missing one a dash."""
    best = {
        column: min(row[column] for row in figures.values() if column in row) for column in columns
    }
    lines = [f"| {unit} | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, row in figures.items():
        cells: list[str] = []
        for column in columns:
            text = _number(row[column]) if column in row else "-"
            cells.append(f"**{text}**" if row.get(column) == best[column] else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def bars(title: str, figures: Mapping[str, float], unit: str) -> str:
    """Return an SVG with one bar for each figure, shorter is better."""
    longest = max(figures.values())
    height = ROW * len(figures) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + WIDTH + 80} {height}" '
        f'role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<text x="0" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for position, (name, figure) in enumerate(figures.items()):
        top = 30 + ROW * position
        width = max(1.0, figure / longest * WIDTH)
        color = OURS if name.startswith("treefold") else OTHERS
        parts += [
            f'<text x="{LABEL - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LABEL}" y="{top}" width="{width:.1f}" height="{ROW - 6}" fill="{color}"/>',
            f'<text x="{LABEL + width + 6:.1f}" y="{top + 13}">{_number(figure)}</text>',
        ]
    parts.append(f'<text x="{LABEL}" y="{height - 6}" fill="#666">{escape(unit)}</text></svg>')
    return "\n".join(parts) + "\n"


def _number(figure: float) -> str:
    return (
        f"{figure:.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 10 else f"{figure:.2f}"
    )
