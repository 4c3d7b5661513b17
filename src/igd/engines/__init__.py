"""Work for several machines, on engines that exist: Ray.

cluster  a Ray cluster, on this machine or elsewhere
shards   scores in files that count when the manifest has them
scoring  images through workers that load a model once
tasks    independent pieces of work, a core each
grid_on_ray  the runs of a benchmark
many_models  a model for each category of a folder
"""
