"""Training detectors."""
