"""What flows in: traces of rates, read or made, and the keys of their events."""

from penstock.workload.data import data_file, data_folder, find_file
from penstock.workload.keys import uniform_keys, value_times, zipf_keys, zipf_shares
from penstock.workload.load import load_trace, save_trace
from penstock.workload.made import MADE_TRACES, made_trace
from penstock.workload.shapes import erratic, fluctuating, periodic, progressive, ramp, stable
from penstock.workload.spikes import HotSet, Spike, draw_spikes, spiky
from penstock.workload.trace import DAY_S, Trace, TraceSummary, constant, played

__all__ = [
    "DAY_S",
    "MADE_TRACES",
    "HotSet",
    "Spike",
    "Trace",
    "TraceSummary",
    "constant",
    "data_file",
    "data_folder",
    "draw_spikes",
    "erratic",
    "find_file",
    "fluctuating",
    "load_trace",
    "made_trace",
    "periodic",
    "played",
    "progressive",
    "ramp",
    "save_trace",
    "spiky",
    "stable",
    "uniform_keys",
    "value_times",
    "zipf_keys",
    "zipf_shares",
]
