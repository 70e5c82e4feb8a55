"""The annotation studio: people annotate texts, others review them, a lead adjudicates and exports.

The modules:

- the project: `project` (its file, read by `load(path) -> Project`; `Form`: what annotators fill in; presets), `items`
  (imported from files of any readable format);
- annotations: `layers` (a `Layer` is one person's annotation of one item; validation, conversion to and from records),
  `comparison` (layers compared with each other and with the suggestions that were shown);
- the store: `tables` (rows as records), `store` (SQLite or PostgreSQL, with migration; every change of a row adds an
  event, and events are append-only), `backup`;
- shared by all endpoints: `web` (settings, served projects, sessions, JSON in and out, errors);
- the rules, each with its endpoints: `people` (invitations, joining), `assignment` (who gets which item, and events),
  `exam`, `review` (of single annotations and of batches), `adjudication`, `dashboard` (statistics for the lead),
  `export`, `texts` (items as people see them, guidelines, interface texts); `agreement` (in any annotated file);
- `app`: the web app of all these, with the request guard, the files of `page/`, and uvicorn.

This file imports nothing: the store and the server need the extra `studio`, the rest does not.
"""
