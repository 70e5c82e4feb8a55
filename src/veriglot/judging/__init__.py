"""What detectors and scorers share: which samples can be judged, long texts in windows, natural language inference."""
