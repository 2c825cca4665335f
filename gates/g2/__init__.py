"""Parts of the baseline gate."""
