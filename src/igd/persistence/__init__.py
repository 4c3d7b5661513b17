"""The model file.

model_file       writing and reading it
backbone_header  the network it holds
description      its header as typed settings, every value checked
older_formats    files of earlier versions in today's words
"""
