"""Tensors on a CUDA device are compared there: one kernel, compiled when it is first needed."""
