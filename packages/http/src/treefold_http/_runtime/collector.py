"""The garbage collector of the process while a project is read.

Modules, signatures and plans are kept: a collection walks all of them and frees nothing. At 5,000
routes the collections took more time than the plans.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_NEVER = 2**31 - 1
"""More objects than a boot makes; 0 would look like the wish of a project to collect nothing."""


@contextmanager
def paused_collection() -> Generator[None]:
    """Start no automatic collection for the length of a block.

    Thresholds that code inside the block sets are kept, and so is `gc.disable()`.
    """
    before = gc.get_threshold()
    if before[0] in {0, _NEVER}:
        yield
        return
    gc.set_threshold(_NEVER, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _NEVER:
            gc.set_threshold(*before)
