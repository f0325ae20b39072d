"""Event-exact simulation of a topology under a policy and a trace, and the arena that compares policies."""
