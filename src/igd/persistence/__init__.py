"""The model file.

model_file     writing and reading it
older_formats  files of earlier versions in today's words
"""
