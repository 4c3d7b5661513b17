"""From a folder of photographs to a running inspection, in the browser: `igd studio`.

workspace       the folder that everything is kept in, and names that may be used there
database        its SQLite file
image_sets      images to train, calibrate and compare with, and why some were left out
data_folders    folders below --data-root, and nothing outside of it
job_store       jobs as the database keeps them
job_queue       one job at a time, each in a process of its own
job_worker      that process: trains, calibrates, compares, exports
job_progress    how far a job is, and how long it will take
model_folder    the model files, loaded again when they change
outcomes        what a prediction means for a person: a tick, an alarm, or a second look
verdicts        the history, and what people said of it
realised_rates  false alarms and misses, by what people said
*_routes       the HTTP API of these
studio_app      all of it around one server
page/          what people look at
"""
