"""Captures a Llama of vLLM's own module classes on a CPU, with the worker extension.

    python vllm_layers.py FOLDER

writes FOLDER/reference, of the same model by transformers, FOLDER/port, and FOLDER/wrong, where one
row of a weight of the port differs. Attention itself is torch's: vLLM's works on the memory of a
running engine. test_adapters.py starts it where vLLM is installed.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from typing import Any

os.environ["VLLM_TARGET_DEVICE"] = "cpu"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import torch  # noqa: E402
import transformers  # noqa: E402
from vllm.config import VllmConfig, set_current_vllm_config  # noqa: E402
from vllm.distributed import init_distributed_environment, initialize_model_parallel  # noqa: E402
from vllm.model_executor.layers.layernorm import RMSNorm  # noqa: E402
from vllm.model_executor.layers.vocab_parallel_embedding import (  # noqa: E402
    VocabParallelEmbedding)
from vllm.model_executor.models import llama  # noqa: E402

import tensordiff  # noqa: E402
from tensordiff.adapters.vllm import CaptureExtension  # noqa: E402

CONFIG = transformers.LlamaConfig(
    vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64)


class Attention(torch.nn.Module):
    def __init__(self, heads: int, size: int, scale: float, num_kv_heads: int, **more: Any) -> None:
        super().__init__()
        self.heads, self.size, self.scale, self.groups = heads, size, scale, num_kv_heads

    def forward(self, *qkv: Any) -> Any:
        q, k, v = (each.view(-1, count, self.size).transpose(0, 1)
                   for each, count in zip(qkv, (self.heads, self.groups, self.groups)))
        k, v = (each.repeat_interleave(self.heads // self.groups, 0) for each in (k, v))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                               scale=self.scale)
        return out.transpose(0, 1).reshape(-1, self.heads * self.size)


class Port(torch.nn.Module):
    """As vLLM's LlamaModel, of which only what an engine needs is left out."""

    def __init__(self, settings: VllmConfig) -> None:
        super().__init__()
        self.embed_tokens = VocabParallelEmbedding(CONFIG.vocab_size, CONFIG.hidden_size)
        self.layers = torch.nn.ModuleList(
            llama.LlamaDecoderLayer(settings, f"model.layers.{layer}", CONFIG)
            for layer in range(CONFIG.num_hidden_layers))
        self.norm = RMSNorm(CONFIG.hidden_size, eps=CONFIG.rms_norm_eps)

    def forward(self, input_ids: Any, positions: Any) -> Any:
        hidden, residual = self.embed_tokens(input_ids), None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden, residual)
        return self.norm(hidden, residual)[0]


def load(port: torch.nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """As vLLM loads them: fused weights part by part."""
    parts = {"q_proj": ("qkv_proj", "q"), "k_proj": ("qkv_proj", "k"), "v_proj": ("qkv_proj", "v"),
             "gate_proj": ("gate_up_proj", 0), "up_proj": ("gate_up_proj", 1)}
    parameters = dict(port.named_parameters())
    for name, weight in weights.items():
        module = name.split(".")[-2]
        whole, part = parts.get(module, (module, None))
        parameter: Any = parameters[name.replace(f"{module}.", f"{whole}.")]
        if part is None:
            getattr(parameter, "weight_loader", lambda p, w: p.data.copy_(w))(parameter, weight)
        else:
            parameter.weight_loader(parameter, weight, part)
    for module in port.modules():
        method = getattr(module, "quant_method", None)
        if method is not None:
            method.process_weights_after_loading(module)


class Runner:
    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model

    def get_model(self) -> torch.nn.Module:
        return self.model


class Worker(CaptureExtension):
    rank = 0

    def __init__(self, model: torch.nn.Module) -> None:
        self.model_runner = Runner(model)


def main(folder: pathlib.Path) -> None:
    torch.manual_seed(0)
    reference: Any = transformers.LlamaModel(CONFIG).eval()
    for parameter in reference.parameters():
        if parameter.dim() == 2:
            parameter.data.normal_(0, parameter.shape[1] ** -0.5)
    ids = torch.randint(0, CONFIG.vocab_size, (1, 7))
    with torch.no_grad(), tensordiff.capture(reference, folder / "reference"):
        reference(ids, use_cache=False)
    settings = VllmConfig()
    llama.Attention = Attention
    with set_current_vllm_config(settings), tempfile.TemporaryDirectory() as place:
        init_distributed_environment(1, 0, f"file://{place}/meet", 0, "gloo")
        initialize_model_parallel(1, 1)
        port = Port(settings).eval()
        load(port, reference.state_dict())
        for name in ("port", "wrong"):
            if name == "wrong":
                port.get_submodule("layers.1.mlp.down_proj").weight.data[3] *= 1.5
            worker = Worker(port)
            worker.tensordiff_start(str(folder / name))
            with torch.no_grad():
                port(ids[0], torch.arange(7))
            print(worker.tensordiff_stop())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
