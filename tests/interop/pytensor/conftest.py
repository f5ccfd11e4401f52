"""Helpers, which import PyTensor and PyMC, have no examples to collect."""

collect_ignore = ["compared.py", "gallery.py", "models.py"]
