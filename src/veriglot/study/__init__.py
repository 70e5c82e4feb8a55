"""The in-the-wild study: responses -> detection -> rates -> report, in one run folder."""
