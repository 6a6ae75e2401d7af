"""The embedded engine: a Llama-family target and its drafters in plain torch, batch 1."""
