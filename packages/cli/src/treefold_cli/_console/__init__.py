"""Arguments, options and output: everything between the terminal and a command."""
