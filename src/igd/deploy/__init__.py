"""Models out of the lab.

tracing       a fitted state as one function of 8-bit pixels
export        that function as an ONNX file, which must agree with the detector or is not written
quantisation  its convolutions in 8-bit integers
parity        how far two models disagree about images
loading       a model file as a predictor, whatever it runs in
server/       HTTP API and page: `igd serve`
"""
