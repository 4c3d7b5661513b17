"""Where images come from, and how they become tensors and back.

images    finding and decoding image files
sources   folders, lists and arrays as training images; labelled test images with masks
geometry  any size in, the model's square, and the map back at the original size
pixels    normalisation, patches, and patch maps laid over the image
demo      a real brick wall, and defects made on it
"""
