"""What runs beside Spark's driver while a run is at work."""
