"""Routes of the framework: the documentation, and the probes of the health setting."""
