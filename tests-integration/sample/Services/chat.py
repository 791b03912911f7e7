"""The talk in the shop: one room for each subject. With Redis it reaches every process."""

import os

from treefold import Rooms

rooms = Rooms(redis=os.environ.get("TREEFOLD_REDIS_URL"))
