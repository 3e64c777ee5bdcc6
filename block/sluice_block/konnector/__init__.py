"""The konnector: attaches volumes to the machine that uses them, and keeps them attached."""
