"""Images in: where they come from, and how they become pixels and back.

sample      an image and what is known about it
dataset     samples under one name, to train on and to test on
formats/    one file a format: folders, manifest, npz, idx, cifar, medical
reading     whatever people have, as a data set
groups      images of one patient or part, that stay together
labels      what a label says
protocols   one class as normal, fewer training images, anomalies among them
sources     folders, lists, arrays and data sets as images to read by number
arrays      arrays and tensors as images, by rules about their shape
remote      images by address, in any storage that fsspec opens
decoding    finding image files, and decoding each or saying why not
image_set   all images of a source, decoded to the model's size
geometry    any size in, the model's size, and the map back at the original size
roi         the region of interest in a fixed frame
roi_arguments  boxes and mask files as such a region
alignment   how far a part lies from its usual place
tiles       an image as overlapping tiles, and their maps as one
tile_set    some tiles of each image to learn from, all of one at a time
store       decoded pixels, in memory or in a temporary file
patches     normalisation, patches, and patch maps laid over the image
row_buffer  rows that come batch after batch, in one tensor
demo        a real brick wall, and defects made on it
"""
