"""``sluice-rewriter``: brings stored objects to what policies say, or to plain bytes."""
