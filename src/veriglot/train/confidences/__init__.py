"""Fitting what stands behind a detector: calibrations, and the weights of several detectors together."""
