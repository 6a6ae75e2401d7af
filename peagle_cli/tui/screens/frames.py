"""Sizes that screens tell apart, and how often they draw."""

FRAMES_PER_S = 30
FRAMES_PER_BATCHES, FRAMES_PER_FIGURES, FRAMES_PER_PLOT = 6, 8, 30
"""Figures change about four times a second, which is often enough to read; a plot takes longer to draw."""

WIDTHS = [(0, "-narrow"), (100, "-normal"), (150, "-wide")]
HEIGHTS = [(0, "-lowest"), (26, "-low"), (36, "-high"), (50, "-tall")]
"""The class that a screen with one conversation has from so many columns, or lines, on."""
