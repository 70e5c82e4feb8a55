"""Confidences of any detector: brought onto words, calibrated, and made into spans again."""
