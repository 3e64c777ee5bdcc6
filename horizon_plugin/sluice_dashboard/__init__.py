"""Panels of Sluice in Horizon, which speak HTTP to the controller as the user who logged in."""
