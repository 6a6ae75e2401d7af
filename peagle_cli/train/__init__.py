"""Training drafters: data, objectives, the loop, export."""
