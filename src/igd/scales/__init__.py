"""What scores an image: the scales, and how several of them make one score.

base              the one interface, and what a scale says of a batch
autoencoder       the paper's model, global (whole images) or local (patches)
samples           an auto-encoder's training samples
whitening         a start for its linear layer on frozen features
position          a Gaussian per position of a frozen backbone's feature maps
position_moments  its statistics, streamed
embedding         a Gaussian of the one vector of a whole image
region_mask       which pixels and positions count
factory           a scale for each kind of settings
fusion            several scales, one score and one map
recipes           every number of a training, under a name
"""
