"""The MAPE loop: monitor, analyze, plan, execute, on an injected clock."""
