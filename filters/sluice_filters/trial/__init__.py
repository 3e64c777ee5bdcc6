"""The trial that uploaded filters must pass before their roll-out."""
