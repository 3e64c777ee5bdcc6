"""What every room of Sluice shares: messages, keys, store, bus, snapshot, options, errors."""
