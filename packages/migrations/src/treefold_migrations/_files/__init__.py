"""Migration files: written, loaded, ordered, hashed, squashed and merged."""
