"""Makes the data of a study: queries, biographies, responses, and the account of their quality."""

from veriglot.datasets.responses import Respondent, responses

__all__ = ["Respondent", "responses"]
