"""Files that outlive a kill: whole-file writes, locks, journals of rows and the manifest beside an output."""
