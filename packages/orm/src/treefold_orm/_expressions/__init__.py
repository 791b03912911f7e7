"""Expressions and conditions a caller writes, resolved against a model into a tree of nodes."""
