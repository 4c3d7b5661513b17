"""Faster forms of standard operations, equal to PyTorch's and tested against them.

filters       blurring, halving and resizing as matrix products
convolutions  convolutions with their sums in another order
adam          a fused step in whatever order numbers lie in memory
session       a graph of ONNX Runtime, in forks of a process too
"""
