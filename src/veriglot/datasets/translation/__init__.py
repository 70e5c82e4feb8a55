"""Translation of annotated samples with their spans."""
