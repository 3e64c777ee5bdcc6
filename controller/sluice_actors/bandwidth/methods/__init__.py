"""The allocation of one method (GET, PUT, replication) in one round."""
