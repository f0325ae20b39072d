"""Recurrent networks as forecasters: LSTM, GRU, and both of them read from either end."""

from penstock.forecast.recurrent.models import BiGru, BiLstm, Gru, Lstm, Recurrent
from penstock.forecast.recurrent.network import installed

RECURRENT: tuple[type[Recurrent], ...] = (Lstm, Gru, BiLstm, BiGru)

__all__ = ["RECURRENT", "BiGru", "BiLstm", "Gru", "Lstm", "Recurrent", "installed"]
