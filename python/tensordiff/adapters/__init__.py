"""Captures of what is not a PyTorch module; each module here needs its own package."""
