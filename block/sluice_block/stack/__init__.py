"""The stack of nbdkit filters of one volume: building the filters, and the page that controls them."""
