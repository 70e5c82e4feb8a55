"""Packages that cannot live beside ours: each in a Python environment of its own, spoken to over a pipe.

`serve.py` and `engines/` are what runs on the other side, and import nothing of Veriglot. The protocol, version 1, is
one JSON object a line in UTF-8, over standard input and output; what a package prints goes to standard error:

    engine    {"type": "hello", "protocol": 1, "engine", "python", "packages": {name: version}}
    Veriglot  {"type": "open", "options": {...}}
    engine    {"type": "ready", "about": {...}} or {"type": "refused", "message", "remedy"}, and it leaves
    Veriglot  {"type": "batch", "id", "rows": [{...}]}, any number of times
    engine    {"type": "results", "id", "rows": [{"value", "parts", "details"} or {"error", "status"}]}, in order

The engine leaves when its input ends. A batch that raises is tried row by row. Where the process dies or takes too
long, another is started and the batch halved until the row that does it stands alone: that one is `failed`.
"""
