"""Recordings: the facts of a session in a file that can be replayed, checked, exported and read back forever.

`format` says what a file holds, `writer` and `reader` write and read it, `rules` are what a reader insists on.
`sessions` and `demos` know where files are, `recording` holds one whole, `replies` sums one up, `export` makes others
of it.
"""
