"""Fields, and what a model is made of: columns, relations, the registry of models."""
