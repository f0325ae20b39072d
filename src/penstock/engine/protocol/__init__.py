"""What driver and workers say to each other, and how events travel between workers."""
