"""A considerate HTTP client: time-outs, retries with backoff, `Retry-After`, rate limits, and redacted keys."""
