"""Timetables: how many replicas an operator shall have over the next intervals, and what that costs.

The planners are pure functions of whole numbers. An epoch is an interval of the timetable: epoch 0 is the interval that
just ended, 1 to T are those that are planned.
"""
