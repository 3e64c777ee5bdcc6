"""How the states of an object follow each other: stamps, votes of devices, and the home that serves the object."""
