"""A project as a whole: its boot and settings, what is wrong in it, and what a reload replaces."""
