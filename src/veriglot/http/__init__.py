"""Asking a web server politely: time-outs, retries with backoff, `Retry-After`, a rate, and keys that stay secret."""
