"""What will enter the topology next."""
