"""Models out of the lab.

tracing       a detector as one function of 8-bit pixels
export        that function as an ONNX file, which must agree with the detector or is not written
quantisation  its convolutions in 8-bit integers
parity        how far two models disagree about images
models        a model file as something that judges, whatever it runs in
regions       connected areas of a heat map, as boxes
server/       HTTP API and page: `igd serve`
"""
