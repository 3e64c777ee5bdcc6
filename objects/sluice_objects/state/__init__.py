"""The state of an object, its encoded form, and the context that methods change it through."""
