"""Connections and pools of the two databases."""
