"""Property tests on a busy machine: no time limit for a single example."""

from hypothesis import settings

settings.register_profile("penstock", deadline=None, max_examples=60)
settings.load_profile("penstock")
