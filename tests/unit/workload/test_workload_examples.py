from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["trace", "load", "keys", "shapes", "spikes", "made"])
def test_the_examples_print_what_they_say(module):
    assert doctest.testmod(import_module(f"penstock.workload.{module}")).failed == 0
