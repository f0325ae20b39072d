"""Recurrent networks as forecasters: LSTM, GRU, and both of them read from either end."""

from penstock.forecast.recurrent.models import BiGru, BiLstm, Gru, Lstm

__all__ = ["BiGru", "BiLstm", "Gru", "Lstm"]
