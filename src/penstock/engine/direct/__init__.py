"""Bundles straight from replica to replica, over connections of their own: a sender's end and a receiver's."""
