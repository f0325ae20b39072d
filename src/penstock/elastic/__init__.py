"""A run under a policy: the control loop around it, the workers beneath it, and what it came to."""

from penstock.elastic.elastic import Elastic
from penstock.elastic.workers import ElasticWorkers

__all__ = ["Elastic", "ElasticWorkers"]
