"""Checks of a deployment: mistakes in settings, code and environment, as data."""
