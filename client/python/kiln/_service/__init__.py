"""The daemon: connections, arrays, functions and their calls, and what the module's functions ask of it."""
