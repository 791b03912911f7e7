"""Annotations: read once, then converted, validated, serialized and documented."""
