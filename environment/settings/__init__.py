"""vars.env: the settings, what their values may be, and the file."""
