"""vLLM as an engine: the tap inside its server, servers of our own, and the client of both."""
