"""The workers underneath: what they are, and who starts and stops them."""
