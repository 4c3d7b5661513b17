"""Frozen networks, and what they make of images.

architectures  the networks that igd knows, behind one interface
efficientnet   EfficientNet-Lite, whose ImageNet weights come with igd
weights        found in a package, in a file, or fetched when asked for; never silently
graph          a frozen network as ONNX Runtime runs it
features       one pass over images, which every scale reads from
feature_cache  features kept in a file, so that no image passes twice
"""
