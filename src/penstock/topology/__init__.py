"""What the user declares: a topology of operators and the streams between them."""

from penstock.topology.operator import Context, Keyed, Operator, Process, SourceSpec, Stream, To
from penstock.topology.replica_id import ReplicaId
from penstock.topology.topology import Topology

__all__ = ["Context", "Keyed", "Operator", "Process", "ReplicaId", "SourceSpec", "Stream", "To", "Topology"]
