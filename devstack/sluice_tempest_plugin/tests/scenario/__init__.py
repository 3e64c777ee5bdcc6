"""What policies do to the requests and objects of a project."""
