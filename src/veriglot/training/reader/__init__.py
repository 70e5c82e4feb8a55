"""Training of the reader: rows that teach it, the network, and how its judgement is joined with the words' own."""
