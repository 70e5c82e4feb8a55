"""`veriglot serve`: detection over HTTP, and a page to try it."""
