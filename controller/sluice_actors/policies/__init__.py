"""Policy actors: state machine, conditions, decisions and their writer."""
