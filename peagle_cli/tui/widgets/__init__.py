"""The parts of screens: each draws what it is given, and computes no figure."""
