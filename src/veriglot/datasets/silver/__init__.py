"""Errors put into texts by a model, and the check that every silver row has to pass, whoever made it."""
