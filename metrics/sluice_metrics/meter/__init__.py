"""Counting in a Swift worker: the meter, its cells, samples, and the busiest targets."""
