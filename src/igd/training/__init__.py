"""From images to a fitted state.

parameters           what a user may set, once: constructor, flags and file header are made of it
plan                 which scales, which size, which backbone
backbone_origin      where the backbone comes from
make_backbone        the backbone of a plan, which may have to learn first
refusals             parameters without effect on what is built
roi_and_alignment    which part of images is read, and where it usually lies
read_images          images to learn from and to calibrate with, decoded and checked
split                which images are learnt from, which are held out; groups stay together
material             the images of a training, and what each is for
learner              what scales learn from, and what other images say of them
fit                  the whole way, from a source of images to a fitted state
distributed          one training in several processes
extract              one pass of the frozen backbone over the training images
crossfit             every image scored by a model that did not learn from it
train_autoencoders   training of the paper's models
calibrate            what held-out normal images say: fusion, threshold, promise
tile_learner         learning from images in tiles
calibrate_tiles      the promise about images that are read in tiles
recalibrate          another threshold for a model that has learnt
calibration_history  what the threshold was before
diagnostics          a training that went wrong must not look like one that went well
checkpoint           what a run is known by, and its state as tensors
fitted               what `fit` makes, the file holds, export reads and `load` returns
"""
