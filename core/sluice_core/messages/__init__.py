"""The messages that cross processes, and the conditions and bounds inside them. Imports errors and describe only."""
