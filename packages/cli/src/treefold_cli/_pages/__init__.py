"""The pages of the documentation in the terminal: where they are, their text, and search."""
