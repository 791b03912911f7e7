"""Deployments drawn beside each other, and an oracle that knows what they may share."""
