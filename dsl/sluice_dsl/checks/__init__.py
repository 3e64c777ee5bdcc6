"""The checks of a parsed sentence: targets, conditions, actions, placement, conflicts."""
