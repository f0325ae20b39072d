"""The dashboard: a store in a browser, and a run's metrics for Prometheus."""
