"""How good a detector is, and pictures of what it sees.

metrics     image and pixel metrics: AUROC, average precision, F1, accuracy at 0.5, AUPRO
confidence  how sure a metric is
evaluate    a detector on labelled test images
overlay   heat maps on an absolute colour scale
figures   curves and histograms as SVG
report    one self-contained HTML page
"""
