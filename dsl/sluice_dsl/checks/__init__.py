"""What a parsed sentence must satisfy: targets, conditions, actions, placement, conflicts."""
