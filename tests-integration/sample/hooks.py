"""What runs when the shop opens and closes. The databases close by themselves.

Hooks keep what they import: no model is imported here, so that a save of one restarts nothing.
"""

from Services.chat import rooms
from treefold import Application, get_logger


def open_shop(app: Application) -> None:
    get_logger("shop").info("the shop is open: %d routes", len(app.table.routes))


on_startup = [open_shop]
on_shutdown = [rooms.close]
