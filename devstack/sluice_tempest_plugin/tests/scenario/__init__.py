"""The effects of policies on the requests and objects of a project."""
