"""The rules: which change of the facts breaks which promise, with a place and a witness."""
