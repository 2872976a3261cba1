"""Makes the dumps in this folder with the programs that write them: PyTorch, flax, ONNX Runtime and
Polygraphy, all of one small Llama with the same weights and tokens.

    python3 make.py   # torch, transformers 4.46, flax, onnx, onnxruntime, polygraphy
"""
import contextlib
import math
import os
import pickle
import shutil
import sqlite3
import sys
import tempfile

sys.path += os.environ.get("MORE_PACKAGES", "").split(":")

import numpy
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))


def model_of():
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=40, max_position_embeddings=32,
        attn_implementation="eager", tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            scale = 1.2 / math.sqrt(parameter.shape[-1])
            parameter.copy_(1 + 0.2 * noise if parameter.dim() == 1
                            else noise if "embed" in name else noise * scale)
    return model, torch.randint(3, 40, (1, 9))


def hooks(model, ids):
    found = {}

    def keep(name):
        def hook(module, args, output):
            if isinstance(output, tuple):
                output = output[0]
            if torch.is_tensor(output):
                found[name] = output
        return hook

    handles = [m.register_forward_hook(keep(n)) for n, m in model.named_modules() if n]
    with torch.no_grad():
        model(input_ids=ids, use_cache=False)
    for handle in handles:
        handle.remove()
    torch.save(found, f"{HERE}/hooks.pt")


def flax(model, ids):
    import flax.serialization
    import jax
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        port = transformers.FlaxLlamaForCausalLM.from_pretrained(folder, from_pt=True)
    ids = ids.numpy()
    _, state = port.module.apply(
        {"params": port.params}, ids, numpy.ones_like(ids), numpy.arange(ids.shape[1])[None],
        capture_intermediates=True, mutable=["intermediates"])
    state = jax.device_get(state)
    state["intermediates"].pop("__call__")  # Objects of transformers, which repeat the last norm
    state["intermediates"]["model"].pop("__call__")  # and the logits.
    with open(f"{HERE}/flax.pkl", "wb") as out:
        pickle.dump(state, out)
    with open(f"{HERE}/flax.msgpack", "wb") as out:
        out.write(flax.serialization.msgpack_serialize(flax.serialization.to_state_dict(state)))


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model, self.lm_head = model.model, model.lm_head

    def forward(self, input_ids):
        mask = torch.ones_like(input_ids)
        return self.lm_head(self.model(input_ids=input_ids, attention_mask=mask,
                                       use_cache=False).last_hidden_state)


# As a debug build creates its tables; pages are small, so that rows go over several.
TABLES = """Create table if not exists Tensors (   Step int not null,   Name text not null,
  Value TensorProto,   DeviceType text,   TracedProducer NodeArg,   TracedConsumers NodeArgList,
  primary key (Step, Name) );
Create table if not exists Nodes (   ExecutionCounter int,   Name text primary key not null,
  OpType text not null,   ExecutionProvider text );"""


def database(path, steps):
    import onnx
    if os.path.exists(path):
        os.remove(path)
    with contextlib.closing(sqlite3.connect(path)) as tables:
        tables.execute("pragma page_size = 512")
        tables.executescript(TABLES)
        for step, values in enumerate(steps):
            for name, value in values.items():
                tensor = onnx.numpy_helper.from_array(value, name).SerializeToString()
                tables.execute('insert into Tensors values (?, ?, ?, "CPU", "", "")',
                               (step, name, tensor))
        tables.commit()


def node_database(values):
    database(f"{HERE}/onnxruntime.db",
             [{n: v for n, v in values.items() if "/layers.1/" in n or "norm" in n}])
    small = numpy.arange(3, dtype=numpy.float32)
    long = numpy.arange(150, dtype=numpy.float32)
    database(f"{HERE}/steps.db", [{"a": small, "b": long}, {"a": small + 1}])


def onnx_dumps(model, ids):
    import onnx
    import onnxruntime
    from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs
    from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
    from polygraphy.comparator import Comparator
    with tempfile.TemporaryDirectory() as folder:
        torch.onnx.export(Logits(model), (ids,), f"{folder}/m.onnx", input_names=["input_ids"],
                          output_names=["logits"], dynamo=False, opset_version=17)
        graph = onnx.load(f"{folder}/m.onnx")
    inner = [o for node in graph.graph.node for o in node.output if node.op_type != "Constant"]
    for name in inner:
        if name != "logits":
            graph.graph.output.append(onnx.ValueInfoProto(name=name))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    feed = {"input_ids": ids.numpy()}
    values = dict(zip(inner, session.run(inner, feed)))
    numpy.savez(f"{HERE}/onnxruntime.npz", **values)

    # As the node dumps of a debug build name and fill their files.
    shutil.rmtree(f"{HERE}/onnxruntime_nodes", ignore_errors=True)
    os.makedirs(f"{HERE}/onnxruntime_nodes")
    for name, value in values.items():
        if "/layers.1/" not in name and "norm" not in name:
            continue
        file = "".join(c if c.isalnum() else "_" for c in name)
        with open(f"{HERE}/onnxruntime_nodes/{file}_default_rank_0.tensorproto", "wb") as out:
            out.write(onnx.numpy_helper.from_array(value, name).SerializeToString())

    node_database(values)
    wanted = [n for n in inner if "proj" in n or "norm/Mul_1" in n or n.endswith(
        ("/Add_output_0", "/Add_1_output_0", "Gather_output_0", "mlp/Mul_output_0", "logits"))]
    runner = OnnxrtRunner(SessionFromOnnx(BytesFromOnnx(ModifyOutputs(graph, outputs=wanted))))
    Comparator.run([runner], data_loader=[feed]).save(f"{HERE}/polygraphy.json")


if __name__ == "__main__":
    MODEL, IDS = model_of()
    hooks(MODEL, IDS)
    flax(MODEL, IDS)
    onnx_dumps(MODEL, IDS)
