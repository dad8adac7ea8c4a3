"""Messages of the wire, generated from proto/kiln/v1 when the package is built."""
