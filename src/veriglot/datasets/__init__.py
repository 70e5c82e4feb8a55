"""Makes the data of a study: queries, biographies, responses, and their quality measures."""
