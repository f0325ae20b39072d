"""Fakes for tests: a clock moved by hand and a small deterministic plant."""
