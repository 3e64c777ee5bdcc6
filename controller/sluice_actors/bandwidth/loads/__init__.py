"""What nodes report of their traffic, decoded and kept in arrays by flow and node."""
