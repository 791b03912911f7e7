"""`python page_sessions.py PAGE ADDRESS` runs the sessions of a page on a database of its own.

A process of its own, because a page configures databases and declares models, and both stay.
"""

import doctest
import sys
import types
from pathlib import Path

from treefold_orm import close_all, configure


def main(page: Path, address: str) -> None:
    """Run the sessions; exit with the report of what failed, or print how many lines ran."""
    module = types.ModuleType("sessions")  # models belong to a module
    sys.modules[module.__name__] = module
    text = page.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text, module.__dict__, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    reported: list[str] = []
    configure(database=address)
    try:
        runner.run(examples, out=reported.append)
    finally:
        close_all()
    if runner.failures:
        sys.exit("".join(reported))
    print(runner.tries)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
