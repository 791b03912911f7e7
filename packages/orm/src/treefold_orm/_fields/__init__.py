"""Fields and the parts of a model: columns, relations, the registry of models."""
