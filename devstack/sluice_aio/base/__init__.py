"""The base of configurations, Keystone and the cluster: layout, set-up, server processes, HTTP."""
