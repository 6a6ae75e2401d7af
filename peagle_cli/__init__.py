"""peagle: a terminal explorer of speculative decoding."""

__version__ = "0.1.0"
