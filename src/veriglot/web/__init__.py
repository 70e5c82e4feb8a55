"""What answers over HTTP (needs the extra `annotate`): the annotation studio."""
