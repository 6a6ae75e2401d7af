"""Recordings: the facts of a session in a file that can be replayed, checked, exported and read back forever.

`format` says what a file holds, `writer` and `reader` write and read it, `rules` are what a reader insists on.
"""
