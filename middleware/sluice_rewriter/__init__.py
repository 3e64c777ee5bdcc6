"""``sluice-rewriter``: rewrites stored objects as policies say, or to plain bytes."""
