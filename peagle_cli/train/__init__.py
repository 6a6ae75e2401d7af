"""Making drafters: conversations written by the target, its states on disk, both objectives, the loop, the export."""
