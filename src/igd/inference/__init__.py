"""Predicting with a finished model, whatever it runs in. Nothing in this room needs PyTorch.

predictor  decoding, batching, p-values, verdicts, maps at the original size
tiled      one score and one map of an image in tiles
conformal  what a score means: p-values, thresholds, the promise
regions    connected areas of an anomaly map, as boxes
mismatch   how an image differs from those a model learnt from
runtime    exported models in ONNX Runtime
header     the header of a model as typed values, every one checked
"""
