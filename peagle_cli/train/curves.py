"""Curves as SVG: small files that pages and repositories show."""

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, MARGIN = 640, 280, 44
COLOURS = ("#2563eb", "#059669", "#d97706", "#dc2626")
TICKS = 5


def svg(title: str, across: str, curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A drawing of named curves, each of points (x, y); the horizontal axis, from 0, is called `across`."""
    points = [point for curve in curves.values() for point in curve]
    right = max((x for x, _ in points), default=1.0) or 1.0
    low, high = min((y for _, y in points), default=0.0), max((y for _, y in points), default=1.0)
    rise = (high - low) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        span_x, span_y = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
        return MARGIN + x / right * span_x, HEIGHT - MARGIN - (y - low) / rise * span_y

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>',
    ]
    for i in range(TICKS + 1):
        x, y = place(right * i / TICKS, low + rise * i / TICKS)
        parts += [
            f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="#e5e7eb"/>',
            f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{low + rise * i / TICKS:.3g}</text>',
            f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{right * i / TICKS:.3g}</text>',
        ]
    for i, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve))
        parts += [
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{MARGIN + 8 + 90 * i}" y="{MARGIN - 6}" fill="{colour}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
