"""`python -m treefold`: the command line."""

import sys

try:
    from treefold_cli import main
except ModuleNotFoundError as error:
    if error.name != "treefold_cli":
        raise
    sys.exit("The commands of treefold need treefold-cli: pip install treefold-cli")

if __name__ == "__main__":
    main()
