"""Property tests on a busy machine: a slow example is no failure."""

from hypothesis import settings

settings.register_profile("sluice", deadline=None)
settings.load_profile("sluice")
