"""Silver data without a model: typed errors put into quoted passages by rule, in every language."""
