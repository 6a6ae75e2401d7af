"""Models on disk: presets, fetching, converting, reading and checking. Knows no engine."""
