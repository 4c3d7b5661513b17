"""The paper's tables and data sets of one's own: measured by runs that can be stopped and resumed,
beside what was published.

run             one measurement: its protocol, and the key it is known by
benchmark_data  a run's training and test images, from files
methods         what is compared: the interface, and IGD, its ablations and DSVDD
baselines       one-class SVM and kernel density, on pixels or any other features
suites          methods by name, variants of the paper's experiments, and the runs they take
trial           one run: train blind, score blind, then measure
run_store       finished runs, in an SQLite file or exported as JSON
grid            many runs in parallel processes, resumable, with the time left
series          runs that belong together, and their mean over seeds
paper           every published figure, typed, in paper.json
result_tables   a table, and how it is printed: Markdown, LaTeX, CSV, HTML
comparison      our tables, with the paper's figures beside them
differences     what each term of the objective adds, with intervals
field_tables    many data sets: per-set figures, worst set, regret, misses
curves          figure 1 of the paper, from our runs
"""
