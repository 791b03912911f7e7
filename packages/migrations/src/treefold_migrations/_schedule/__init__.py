"""What a command has to run: the files, in their order, as units of steps."""
