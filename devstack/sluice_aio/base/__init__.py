"""What configurations, Keystone and the cluster build on: layout, set-up, server processes, HTTP."""
