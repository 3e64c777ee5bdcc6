"""Divides the cluster's bandwidth each second: objectives and loads in, shares out."""
