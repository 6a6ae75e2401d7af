"""Measures peagle on this machine: its engine, beside other programs that are installed, and how fast it starts."""
