"""Forecasters trained off line: many at once, kept in a folder, loaded by a loop while it runs."""
