"""What is shown of a second: floors not met, shares, idle floors."""
