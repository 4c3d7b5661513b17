"""The installed version, in a place that imports nothing else."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("igd-anomaly")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0.0.0"
