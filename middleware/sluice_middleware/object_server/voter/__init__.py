"""What an object server keeps of promises: records and incarnation of a device, and the lock of an object."""
