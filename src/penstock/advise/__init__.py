"""Advice from Spark's event logs: what queries cost, and what their executors could have been."""
