"""The configuration files of the all-in-one cluster."""
