"""Where an encoder comes from: ImageNet weights, distillation, contrastive learning.

backbones     the networks an encoder can be, behind one interface
efficientnet  EfficientNet-Lite, whose ImageNet weights come with igd
weights       found in a package, in a file, or fetched when asked for; never silently
graph         a frozen network as ONNX Runtime runs it
features      what a frozen backbone sees in images, computed once
whitening     the linear layer's start that makes the isotropic Gaussian a Mahalanobis distance
distillation  a small encoder that learns to see what a large one sees
contrastive   an encoder that learns from the normal images alone
fitting       the training that these two share
"""
