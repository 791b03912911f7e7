"""`python -m treefold`: the command line."""

from treefold_cli import main

if __name__ == "__main__":
    main()
