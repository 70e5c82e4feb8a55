"""Makes the data of a study: queries, biographies, responses, and the account of their quality."""
