"""From trees of nodes to SQL, parameters and row decoders; pure, no I/O."""
