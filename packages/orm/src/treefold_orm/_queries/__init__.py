"""Querysets, managers and CTEs: the calls that run, each for sync and for async code."""
