"""Volumes of Cinder, what they lie in, and what is done with them."""
