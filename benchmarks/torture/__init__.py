"""The torture campaign: damaged files, kills, failing writes, odd command lines and bad requests.

campaign        the command: parts, counts, seed; the table and docs/results/torture.json
tally           what is counted, and what each word means
materials       tiny models and images that everything is tried on
worker          a process that does one thing after another, and may die of it
mutations       bytes, images and headers changed by a seed and a number
damaged_images  through the library, the command, the exported runtime and the server
damaged_models  .igd and .onnx files: changed bytes, and forged headers with a right checksum
kills           SIGKILL at any moment of train, pretrain, predict, benchmark, export
failing_disk    writes that fail at the n-th byte
odd_commands    command lines that hypothesis makes of the parsers' own flags
hostile_http    bad requests, many clients, a soak
"""
