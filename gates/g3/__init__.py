"""Parts of the main gate."""
