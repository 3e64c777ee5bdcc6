"""What clients, administrators and other versions meet: recorded once, and compared with the code of today."""
