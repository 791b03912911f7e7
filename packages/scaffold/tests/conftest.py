"""Properties without a deadline: a limit of the clock would fail on a busy machine."""

from hypothesis import settings

settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")
