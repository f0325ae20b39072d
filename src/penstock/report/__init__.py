"""What a run or a contest leaves for people to read: one self-contained HTML file with figures, plots and decisions.

Nothing is imported here: a command that draws nothing shall not wait for a plotting library.
"""
