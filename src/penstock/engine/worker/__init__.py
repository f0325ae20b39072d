"""What runs in Spark's Python workers: slots of sources, replicas of operators, the agent beside them."""
