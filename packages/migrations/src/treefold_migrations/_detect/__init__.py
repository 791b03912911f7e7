"""From models to a state, and the operations between two states."""
