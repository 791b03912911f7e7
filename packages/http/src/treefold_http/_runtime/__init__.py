"""What all connections share: settings, threads, background tasks, exit callbacks, `Runtime`."""
