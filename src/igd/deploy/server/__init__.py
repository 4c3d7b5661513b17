"""HTTP API and page: `igd serve`.

app          routes, page and middleware around one service
routes       the HTTP API
schemas      the fields of its JSON responses
responses    predictions as such responses, maps as PNG
http_errors  requests that are refused: status, reason, way out
uploads      images out of a request's body, no more of it than is accepted
service      models, admission and threads; from uploads to predictions
scorer       one thread that scores; what arrives while it is busy is scored together
roles        which token may do what: view, inspect, train
middleware   what surrounds every request: token, headers, metrics, a line of log
prometheus   the counters and histograms of /metrics
lifecycle    listening, loading, draining
settings     the limits that whoever starts the server decides
page/        what people look at
"""
