"""How good a detector is, and pictures of what it finds.

metrics     image and pixel metrics: AUROC, average precision, F1, accuracy at 0.5, AUPRO
confidence  how sure a metric is
evaluate    a detector on labelled test images
summary     what it means in words: misses, false alarms, rates to choose from
results     what `predict` writes
audit       which training images look least normal to models that did not train on them
latents     where test images lie in a model's latent space
overlay     anomaly maps on an absolute colour scale
colour_bar  what its colours mean
galleries   images, overlays and maps by kind of defect
figures     curves, histograms and scatter plots as SVG, by matplotlib
svg         drawings as files of their own
page        HTML pages that stand alone
report      the page about a detector on a test set
"""
