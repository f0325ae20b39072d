"""OSG, online shuffle grouping: to the replica with the least work, as estimated from sketches of past events.

`OnlineShuffle` is the sender's side, `Sketching` the replica's. Both are made of compiled functions (`scheduler`,
`sketchers`) that a simulation can use as well.
"""

from penstock.grouping.online_shuffle.feedback import Reply, Request, Sketch
from penstock.grouping.online_shuffle.online_shuffle import OnlineShuffle
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.grouping.online_shuffle.sketching import Sketching

__all__ = ["OnlineShuffle", "OnlineShuffleOptions", "Reply", "Request", "Sketch", "Sketching"]
