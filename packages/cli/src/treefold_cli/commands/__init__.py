"""One module per command, each imported when its command is typed.

A module `_<name>` holds a function `<name>`: its signature is the options, its docstring the help,
its result the exit code. Slow imports are done in the function.
"""
