"""Silver data without a model: typed errors that rules insert into quoted passages, in every language."""
