"""How many replicas each operator gets: policies, and the guards around them."""
