"""What a run did: counters, the loads of an interval, the papers' metrics, and the store."""
