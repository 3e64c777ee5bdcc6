"""Small filters, most of them examples of the contract."""
