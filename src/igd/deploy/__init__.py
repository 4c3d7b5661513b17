"""Models at work.

models   a model file as something that judges, whatever it runs in
regions  connected areas of a heat map, as boxes
server/  HTTP API and page: `igd serve`
"""
