"""The history of metrics in Redis: which series are kept, how their points are laid out, and how they are read."""
