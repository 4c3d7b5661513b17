"""Encoders of one's own.

contrastive       learnt from the normal images alone (SimCLR)
rotation          learnt from the normal images alone: which way up they are
distillation      a small encoder that learns to give a large one's vectors
augmentation      views of an image
encoder_training  the training that these share
encoders          encoders as files
"""
