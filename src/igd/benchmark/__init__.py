"""The paper's tables: as published, and as measured here, by runs that can be stopped and resumed.

paper      every published figure, typed
runs       one measurement, and the key it is known by
suites     the variants of the paper's experiments: grids of runs
datasets   a run's training and test images, from files
protocols  less training data, or anomalies among it
method     what is compared, behind one interface
methods    all of them by name; a further one is one small class
deep       IGD, its ablations and DSVDD
classical  one-class SVM and kernel density, on pixels or any other features
trial      one run: train blind, score blind, then measure
store      finished runs, in an SQLite file
worker     a process that carries out one run
grid       many runs: in parallel, resumable
outlook    how a grid is going, and the time left
series     runs that belong together, and their mean over seeds
summary    our tables, with the paper's figures beside them
reprint    a table of the paper
table      a table before it is printed
formats    tables as Markdown, LaTeX, CSV and HTML
curves     figure 1 of the paper, from our runs
export     a store as one JSON file, with what made it
"""
