"""What people write instead: safetensors, torch, and a few metrics for each tensor."""
import sys

import torch
from safetensors import safe_open

with safe_open(sys.argv[1], "pt") as a, safe_open(sys.argv[2], "pt") as b:
    for name in a.keys():
        x, y = a.get_tensor(name).double().flatten(), b.get_tensor(name).double().flatten()
        d = y - x
        print(name, float(d.abs().max()), float(d.abs().mean()), float(d.norm() / x.norm()),
              float(torch.nn.functional.cosine_similarity(x, y, dim=0)),
              [float(value) for side in (x, y)
               for value in (side.mean(), side.std(), side.min(), side.max())],
              torch.allclose(x, y, rtol=1.3e-6, atol=1e-5))
