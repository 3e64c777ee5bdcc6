"""What runs in proxy servers: pipeline entries, handling of objects, metrics, choice of replicas."""
