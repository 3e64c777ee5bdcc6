"""What Prometheus reads: numbers of the API and the cluster, what tenants move, what volumes do."""
