"""Values for people: plots, the history of metrics as plots, and numbers with their units."""
