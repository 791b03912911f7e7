"""Findings for people and for programs, and those that were accepted with a reason."""
