"""Policy actors: state machine, conditions, decisions and how they are written."""
