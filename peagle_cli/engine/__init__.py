"""Engines, how one is opened, and the process that the embedded one lives in."""
