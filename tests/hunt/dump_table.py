"""Further layouts for dumps.py: see LAYOUTS there."""
import dump_kept
import dump_tools

LLAMAS = ["llama", "qwen2", "mistral"]
ALL = LLAMAS + ["mixtral", "gpt2", "neox", "gemma2"]

MORE = {
    "nested-tree": (dump_kept.nested_tree, {}, ALL, ""),
    "dataclasses": (dump_kept.dataclasses_of_layers, {}, ALL, ""),
    "pairs": (dump_kept.pairs, {}, ALL, ""),
    "records": (dump_kept.records, {}, ALL, ""),
    "hdf5": (dump_kept.hdf5, {}, ALL, ""),
    "hdf5-flat": (dump_kept.hdf5, {"flat": True}, ALL, ""),
    "stats-csv": (dump_kept.statistics, {}, ALL, ""),
    "stats-jsonl": (dump_kept.statistics, {"form": "jsonl"}, ALL, ""),
    "stats-json": (dump_kept.statistics, {"form": "json"}, ALL, ""),
    "nnsight-cache": (dump_kept.nnsight_cache, {}, ALL, ""),
    "nnsight-inputs": (dump_kept.nnsight_cache, {"inputs": True}, ALL, ""),
    "nnterp": (dump_kept.nnterp, {}, ALL, ""),
    "hub-debugger": (dump_kept.hub_debugger, {}, ALL, ""),
    "model-output": (dump_kept.model_output, {}, LLAMAS, ""),
    "workers": (dump_kept.workers, {}, ALL, "ranks batch"),
    "maxtext": (dump_tools.maxtext, {}, LLAMAS, ""),
    "maxtext-layers": (dump_tools.maxtext, {"scanned": False}, LLAMAS, ""),
    "torchtitan": (dump_tools.torchtitan, {}, LLAMAS, ""),
    "megatron-local": (dump_tools.megatron_local, {}, LLAMAS, "ranks"),
    "megatron-shards": (dump_tools.megatron_local, {"shards": True}, LLAMAS, "ranks"),
    "megatron-stages": (dump_tools.megatron_local, {"stages": 2}, LLAMAS, "ranks"),
    "msprobe-mix": (dump_tools.msprobe_more, {}, ALL, ""),
    "msprobe-L0-all": (dump_tools.msprobe_more, {"level": "L0"}, ALL, ""),
    "msprobe-L1": (dump_tools.msprobe_more, {"level": "L1"}, ALL, "both"),
    "msprobe-crash": (dump_tools.msprobe_more, {"level": "L0", "crash": True}, ALL, ""),
    "msprobe-wrapped": (dump_tools.msprobe_more, {"level": "L0", "wrap": "module.module."}, ALL,
                        ""),
    "msprobe-list": (dump_tools.msprobe_more, {"level": "L0", "wrap": "0."}, ALL, ""),
    "msprobe-cells": (dump_tools.msprobe_more, {"level": "L0", "mindspore": True}, ALL, ""),
    "dumper-all": (dump_tools.dumper_all, {}, LLAMAS, "ranks passes batch"),
    "dumper-all-short": (dump_tools.dumper_all, {"files": False}, LLAMAS, "ranks passes"),
    "dumper-partial": (dump_tools.dumper_partial, {}, LLAMAS, "ranks passes"),
    "llama-graph": (dump_tools.llama_graph, {}, LLAMAS, ""),
}
