"""What an engine did, as facts: events, and the figures that follow from them.

Knows no engine and no screen. Live runs, recordings, the screen, `--output jsonl` and the tests all speak these.
"""
