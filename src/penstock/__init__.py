"""Predictive elasticity for stream processing on Apache Spark."""
