"""The two databases behind one contract; the only modules that do I/O."""
