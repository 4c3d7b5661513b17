"""The paper, in pure PyTorch: tensors in, tensors out; no files, no printing, no globals.

gaussian        the E-step's statistics; normality and anomaly of a latent
similarity      SSIM and MS-SSIM, as score and as per-pixel map
reconstruction  MAE + MS-SSIM: loss, score and map
interpolation   latent and image interpolation; critic and fooling losses
networks        encoder, decoder (its reverse), critic
objective       which terms count and how much: IGD, its ablations, DSVDD
balance         a limit on how hard the classifier pulls on the latents
em              the training loop: E-step, M-step
positions       a Gaussian at each position of feature maps: the pixel-wise descriptor
filters         blurring, halving and resizing
"""
