"""`python -m treefold_cli`: the same as the command `treefold`.

The guard is needed: worker processes import this module again under another name.
"""

from treefold_cli._console.main import main

if __name__ == "__main__":
    main()
