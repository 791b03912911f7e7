"""Property tests have no deadline: a wall-clock limit fails on a busy machine."""

from hypothesis import settings

settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")
