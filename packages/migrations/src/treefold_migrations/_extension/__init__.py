"""The entry point that treefold applications find."""
