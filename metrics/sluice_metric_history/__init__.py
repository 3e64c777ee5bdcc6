"""The history of metrics in Redis: the stored series, the layout of their points, and operations to read them."""
