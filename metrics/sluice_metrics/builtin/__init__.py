"""The metrics that Sluice ships, one file each."""
