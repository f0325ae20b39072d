"""What a query's progress means, without Spark: rows that come and wait, what they cost, and how late they are."""
