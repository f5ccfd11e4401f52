"""Helpers, which import PyTensor and PyMC, have no examples to collect."""

collect_ignore = ["compared.py", "models.py"]
