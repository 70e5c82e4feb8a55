"""The annotation studio: people mark texts, others review them, a lead settles and exports.

The map, by file:

- the project: `project` (its file, read by `load(path) -> Project`; `Form`, what there is to fill in; presets), `items`
  (from files of any readable format);
- what is filled in: `layers` (a `Layer`, checked against its form, to and from records), `comparison` (layers held
  against each other and against the marks shown beforehand);
- the store: `tables` (rows as records), `store` (opened on SQLite or PostgreSQL, migrated; every change of a row comes
  with its event, and events are only ever added), `backup`;
- what every call shares: `web` (settings, projects served, sessions, JSON in and out, failures);
- the rules, each with its calls: `people` (invitations, joining), `assignment` (who gets what, and does what with it),
  `exam`, `review` (of one annotation and of batches), `adjudication`, `dashboard` (figures for the lead), `export`,
  `texts` (items as people see them, guidelines, words of the interface); `agreement` (in any annotated file);
- `app`: all put together, with the guard, the files of `page/`, and uvicorn.

Nothing is imported here: the store and the server need the extra `studio`, the rest does not.
"""
