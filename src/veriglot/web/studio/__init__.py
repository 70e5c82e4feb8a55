"""The annotation studio over HTTP: the rules of `veriglot.annotate` behind an API, and the page that calls it.

The map, by file:

- `settings` (what an operator may set), `studios` (projects with their stores), `app` (all put together), `serving`
  (uvicorn: start, stop);
- `guard` (what holds for every request: hosts, origins, sizes, headers), `sessions` (who is asking; CSRF), `rates`
  (how often they may), `failures` (what went wrong, as JSON without a trace);
- `wire` (JSON by msgspec, strictly, and its OpenAPI), `views` (what is sent and received), `showing` (assignments as
  people see them, texts cut into words and sentences once);
- `api_joining`, `api_work`, `api_texts`, `api_lead`: the calls, by who makes them;
- `page_files` and `page/`: the page, without a build step.
"""
