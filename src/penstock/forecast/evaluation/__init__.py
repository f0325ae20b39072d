"""How well forecasters do on a series: split, train, then forecast, compare and learn, row by row."""
