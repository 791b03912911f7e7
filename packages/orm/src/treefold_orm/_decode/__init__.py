"""Compiled statements, and the decoders of their rows; no query and no model is known here."""
