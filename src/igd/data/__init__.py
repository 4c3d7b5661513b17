"""Where images come from, and how they become tensors and back.

samples    an image and what is known about it
dataset    samples under one name, to train on and to test on
reading    whatever people have, as a data set: folders, manifest, arrays, idx, cifar, medical
labels     what a label says
protocols  one class as normal, fewer training images, anomalies among them
images     finding and decoding image files
sources    folders, lists, arrays and data sets as images to read by number
decoding   those images as pixels at the model's size
geometry   any size in, the model's square, and the map back at the original size
store      decoded pixels, in memory or in a temporary file
pixels     normalisation, patches, and patch maps laid over the image
demo       a real brick wall, and defects made on it
"""
