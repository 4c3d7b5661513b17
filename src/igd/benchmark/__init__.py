"""The paper's tables: as published, and as measured here, by runs that can be stopped and resumed.

paper      every published figure, typed
suites     data sets, their classes, and the variants of each: the grid of runs
datasets   a run's training and test images, from files
protocols  less training data, or anomalies among it
methods    what is compared, behind one interface; a further method is one small class
classical  one-class SVM and kernel density, on pixels or any other features
trial      one run: train blind, score blind, then measure
store      finished runs, in an SQLite file
worker     a process that carries out one run
grid       many runs: in parallel, resumable, with time left
summary    means and deviations over seeds, beside the paper's figures
formats    tables as Markdown, LaTeX, CSV and HTML
curves     figure 1 of the paper, from our runs
export     a store as one JSON file, with what made it
"""
