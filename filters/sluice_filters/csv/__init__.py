"""Selection of rows and columns of CSV while it is read."""
