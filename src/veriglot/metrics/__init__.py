"""How good is a detector: counts per response first, figures with intervals after.

The functions here are pure: arrays in, numbers out. `veriglot.bench` joins them to detectors and data.
"""
