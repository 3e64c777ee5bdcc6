"""Files of a node that keep the cache of objects coherent: which objects were written, and when."""
