"""Swift's own functional tests in every set-up, compared with plain Swift."""
