"""Metrics of a node: merged from its workers and CollectD, published each second."""
