"""What a run or a contest leaves for people to read: one self-contained HTML file with figures, plots and decisions.

Three layers: series (`series`, `workers`, `arena`: frames from the store or a simulation), figures (`plots`,
`arena_plots`, by the means of `draw`) and pages (`run_page`, `arena_page`, `backtest_page`, by the means of `page` and
the templates). The terminal has `terminal`. Nothing is imported here: a command that draws nothing shall not wait for
a plotting library.
"""
