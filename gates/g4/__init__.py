"""Parts of the soak gate."""
