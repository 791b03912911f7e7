"""Shapes: records for requests and responses, made of columns of a model."""
