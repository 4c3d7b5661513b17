"""HTTP API and page: `igd serve`.

settings  what whoever starts the server decides
refusals  an answer that is no result: status, reason, way out
uploads   images out of a request's body, no more of it than is accepted
scorer    one thread that scores; what arrives while it is busy is scored together
service   models, places and threads; from uploads to predictions
answers   what is said about an image and about a model, and its pictures
routes    the HTTP API
guard     what surrounds every request: token, headers, figures, a line of log
figures   counters and histograms for Prometheus
running   listening, loading, draining
page/     what people look at
"""
