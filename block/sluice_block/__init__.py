"""Volumes: a Cinder driver, and the filters on the consumer's side."""
