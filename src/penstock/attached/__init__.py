"""A Structured Streaming query that somebody else has started: watched from the driver, its executors kept to need."""
