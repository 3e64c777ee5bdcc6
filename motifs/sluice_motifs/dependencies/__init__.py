"""What items are to their sources: out of date, able to be made again, in need of a source that changes."""
