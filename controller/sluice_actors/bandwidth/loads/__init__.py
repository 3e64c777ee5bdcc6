"""What nodes reported lately, in arrays."""
