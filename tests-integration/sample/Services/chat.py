"""The talk in the shop: one room for each subject."""

from treefold import Rooms

rooms = Rooms()
