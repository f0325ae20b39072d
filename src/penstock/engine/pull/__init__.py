"""Late binding on Spark: who has room says so to its senders, who keep the rest."""
