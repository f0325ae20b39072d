"""`python -m penstock.cli`, the same as `penstock`."""

from penstock.cli.main import app

if __name__ == "__main__":  # processes that share work import this, too
    app(prog_name="penstock")
