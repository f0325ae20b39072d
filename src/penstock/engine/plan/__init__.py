"""What is run on Spark: the layout of the pools, the program of a partition, the queries."""
