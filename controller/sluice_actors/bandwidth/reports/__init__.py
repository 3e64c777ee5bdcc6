"""Reports of a round for the API: shares, floors that are not met, idle floors."""
