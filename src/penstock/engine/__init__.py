"""Runs a topology on Spark."""
