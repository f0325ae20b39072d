"""The online shuffle on Spark: senders, replicas, and the mail between them."""
