"""The rules of an annotation project: everything of the studio that is not HTTP.

The map of the area, by file:

- `entries` (the tables of a project file), `project` (reads and checks it: `load(path) -> Project`), `presets` (files
  to begin with);
- `forms` (what there is to fill in: `Form`), `layers` (what was filled in: `Layer`), `checking` (whether the two go
  together:
  `check(layer, form, sample)`), `annotations` (layers to and from records);
- `items` (from files of any readable format to items), `people` (invitations, joining, roles), `backup` (backup and
  restore);
- `store/`: the tables, their migrations, and `Store`, through which everything is read and written, on SQLite and
  PostgreSQL.
  Every change of a row comes with its event in the same transaction, and events are only ever added;
- the rules stand on these, a file each: `assigning` (who gets what), `acting` (what somebody does, with what follows),
  `exam`, `reviewing`, `validating`, `adjudicating`, `pace`, `figures`, `agreeing`, `exporting`;
- `agreement/`: how far layers agree.

Nothing is imported here: the store needs the extra `annotate`, the rest does not.
"""
