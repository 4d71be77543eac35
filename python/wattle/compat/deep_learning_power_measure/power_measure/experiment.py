"""Experiment records, ExpResults reads. Both use a driver (parsers) that stores the recordings.

As a program it shows a recording: python3 -m wattle.compat.deep_learning_power_measure.power_measure.experiment
--output_folder F [--curve a,b]
"""
from ._curves import (cumsum, humanize_bytes, integrate, interpolate, is_iou, joules_to_kwh, time_to_sec, total)
from ._experiment import Experiment, get_pid_list
from ._recording import EXP_DONE, STOP_MESSAGE
from ._results import ExpResults

__all__ = ["EXP_DONE", "ExpResults", "Experiment", "STOP_MESSAGE", "cumsum", "get_pid_list", "humanize_bytes",
           "integrate", "interpolate", "is_iou", "joules_to_kwh", "time_to_sec", "total"]

if __name__ == "__main__":
    import sys

    from .._program import read
    sys.exit(read())
