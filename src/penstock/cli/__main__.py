"""`python -m penstock.cli`, the same as `penstock`."""

from penstock.cli.main import app

app(prog_name="penstock")
