"""Recorded sessions: the file format, its writer and its reader."""
