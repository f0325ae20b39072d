"""What a run, a contest or a backtest leaves for people to read: an HTML file that needs nothing else, and tables.

What is shown comes from `run`, `workers` and `arena`; `run_page`, `arena_page` and `backtest_page` draw it, by means of
`draw`, `page` and the templates. Nothing is imported here: a command that draws nothing does not load matplotlib.
"""
