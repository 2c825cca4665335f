"""The pages, one router a subject."""
