"""One module per command, each imported when its command is typed.

A module `_<name>` holds a function `<name>`: its signature is the options, its docstring the help,
its result the exit code. What takes long to import is imported in the function.
"""
