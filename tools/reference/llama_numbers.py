"""How Hugging Face's models of Llama's shape compute in float64: their norms and angles are in float32 whatever their type."""
import contextlib
from unittest import mock

import torch


@contextlib.contextmanager
def float_is_double():
    with (mock.patch.object(torch, "float", torch.float64), mock.patch.object(torch, "float32", torch.float64),
          mock.patch.object(torch.Tensor, "float", torch.Tensor.double)):
        yield


def widen_scale(model):
    """Gemma's factor of embeddings, which is a float32 buffer whatever the model's type."""
    embedding = model.get_input_embeddings()
    if hasattr(embedding, "embed_scale"):
        embedding.embed_scale = torch.tensor(embedding.scalar_embed_scale, dtype=torch.float64)
    return model
