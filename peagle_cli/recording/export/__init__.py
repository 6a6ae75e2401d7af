"""Exports of recordings: each module makes text of one kind from a recording's file, piece by piece."""
