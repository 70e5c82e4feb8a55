"""Where texts come from: Wikipedia through its API and its dumps, Wikidata, page views."""
