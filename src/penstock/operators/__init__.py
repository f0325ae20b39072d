"""Operators with state that many topologies need: distinct events, running averages."""

from penstock.operators.distinct import Distinct
from penstock.operators.running_average import Average, RunningAverage

__all__ = ["Average", "Distinct", "RunningAverage"]
