"""By torch.compile."""

import torch

from model_peers import torch_models
from model_peers.torch_models import gpt2, lstm, mnist, resnet  # noqa: F401

torch_models.compiled = torch.compile
