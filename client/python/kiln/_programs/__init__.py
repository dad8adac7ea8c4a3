"""Programs: graphs of tensors that run many steps in one call."""
