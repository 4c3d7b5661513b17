"""Models out of the lab.

tracing  a detector as one function of 8-bit pixels
export   that function as an ONNX file, which must agree with the detector or is not written
parity   how far two models disagree about images
models   any model file, as something that judges images
"""
