"""The actor runtime: actors and timers on one asyncio loop."""
