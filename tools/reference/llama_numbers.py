"""How Hugging Face's models of Llama's shape compute in float64: their norms and angles are in float32 whatever their type."""
import contextlib
from unittest import mock

import torch


@contextlib.contextmanager
def float_is_double():
    with mock.patch.object(torch, "float", torch.float64), mock.patch.object(torch, "float32", torch.float64):
        yield
