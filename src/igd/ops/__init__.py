"""Faster forms of standard operations, equal to PyTorch's and tested against them.

filters       blurring, halving and resizing as matrix products
convolutions  three convolutions with their sums in another order
session       a graph of ONNX Runtime, in forks of a process too
"""
