"""Several detectors as one: the mean of their confidences, or weights that were learned from labels."""
