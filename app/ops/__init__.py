"""Running the service: is work done, how much of it waits, what is kept, how a copy is made and brought back."""
