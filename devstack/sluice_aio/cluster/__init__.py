"""The all-in-one cluster: services, rings, processes, their folders and ports."""
