"""The shares of one method (GET, PUT, replication) in one second."""
