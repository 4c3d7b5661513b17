"""What scores an image: the scales, and how several of them make one score.

base                the one interface, and what a scale says of a batch
autoencoder         the paper's model, global (whole images) or local (patches)
samples             an auto-encoder's training samples
whitening           a start for its linear layer on frozen features
encoder_statistics  Gaussians of its encoder at every depth, where that learnt from scratch
error_background    which errors are usual at each position
position            a Gaussian per position of a frozen backbone's feature maps
position_moments    its statistics, streamed
bank                a bank of normal patches of these maps
whole               a Gaussian of the mean and the deviation of these maps
embedding           a Gaussian of the one vector of a whole image
turns               how well an encoder that learnt to tell an image's turns does so
pixel               the scale of models made before 0.2
patch_features      features of unit length, and the score of a map of distances
shrunk_gaussian     a Gaussian of long vectors
region_mask         which pixels and positions count
factory             a scale for each kind of settings
fusion              several scales, one score and one map
scale_settings      what each scale is told
recipes             every number of a training, under a name
"""
