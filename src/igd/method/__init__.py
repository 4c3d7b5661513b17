"""The paper, in pure PyTorch: tensors in, tensors out; no files, no printing, no globals.

gaussian        the E-step's statistics; normality and anomaly of a latent
similarity      SSIM and MS-SSIM, as score and as per-pixel map
reconstruction  MAE + MS-SSIM: loss, score and map
interpolation   latent and image interpolation; critic and fooling losses
resnet          ResNet18 and its blocks, forwards and in reverse
networks        encoder, decoder (its reverse), critic
objective       which terms count and how much: IGD, its ablations, DSVDD
balance         a limit on how hard the classifier pulls on the latents
schedule        how long and how to train
e_step          mu and sigma of the latents
m_step          one batch: a step of the auto-encoder, a step of the critic
em              the training loop: E-step, M-step
training_state  its samples, and all that it changes
scoring         losses as scores and maps: eqs. 13 to 16
"""
