"""`python -m igd`, where the command is not on the path."""

from igd.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
