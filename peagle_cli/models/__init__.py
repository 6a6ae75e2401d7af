"""Models on disk: presets, fetching, reading and checking. Knows no torch module and no engine."""
