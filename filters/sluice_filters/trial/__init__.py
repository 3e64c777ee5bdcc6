"""The trial that uploaded filters must pass before they are rolled out."""
