"""The full-screen interface. Knows events and the engine protocol; never torch, never vLLM."""
