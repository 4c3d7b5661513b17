"""The version, written here alone: pyproject.toml reads it, and asking for it imports nothing."""

__version__ = "0.2.0.dev0"
