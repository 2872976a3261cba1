"""Makes the files of this folder: python3 make.py OUT. Written by torch 2.11.0 on Python 3.12.

Each model is small and its values are known: truth.json has name, dtype, shape and all values as
torch holds them. DeepSpeed's and Megatron's folders are laid out here as those programs lay them
out; the tar of torch 0.1 is loaded again by torch before it is kept.
"""

import collections
import io
import json
import os
import pickle
import struct
import sys
import tarfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
TRUTH = {}


def path(name):
    full = os.path.join(OUT, name)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    return full


def numbers(*shape, start=0, dtype=torch.float32):
    count = int(torch.Size(shape).numel())
    return (torch.arange(start, start + count, dtype=torch.float32) / 4).reshape(shape).to(dtype)


def note(name, tensors):
    TRUTH[name] = {key: {"dtype": str(t.dtype)[6:], "shape": list(t.shape),
                         "values": t.detach().double().flatten().tolist()}
                   for key, t in tensors.items()}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.fc.weight.data = numbers(2, 3)
        self.fc.bias.data = numbers(2, start=100)
        self.register_buffer("scale", numbers(2, start=50).to(torch.float64))

    def forward(self, x):
        return self.fc(x) * self.scale + torch.tensor([0.5, 0.25])


def script_and_export():
    net = Net()
    state = dict(net.state_dict())
    traced = torch.jit.trace(net, torch.zeros(1, 3))
    traced.save(path("traced.pt"))
    note("traced.pt", state | {"constants.0": torch.tensor([0.5, 0.25])})
    torch.jit.script(net)._save_for_lite_interpreter(path("mobile.ptl"))
    note("mobile.ptl", state)
    program = torch.export.export(net, (torch.zeros(1, 3),))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # It holds paths of the machine that made the file.
    torch.export.save(program, path("export.pt2"))
    note("export.pt2", state)


def pickles():
    import numpy
    plain = {"w": numbers(2, 2), "n": numpy.arange(6, dtype=numpy.int16).reshape(2, 3)}
    with open(path("tensors.pkl"), "wb") as file:
        pickle.dump(plain, file)
    note("tensors.pkl", {"w": plain["w"], "n": torch.from_numpy(plain["n"])})


def dcp_worker(rank, world, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    row = init_device_mesh("cpu", (world,), mesh_dim_names=("x",))
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("x", "y"))
    state = {
        "model": {
            "rows": distribute_tensor(numbers(7, 3), row, [Shard(0)]),  # Uneven: 2 2 2 1.
            "cols": distribute_tensor(numbers(2, 8, dtype=torch.bfloat16), row, [Shard(1)]),
            "grid": distribute_tensor(numbers(4, 6), grid, [Shard(0), Shard(1)]),
            "copy": distribute_tensor(numbers(3), row, [Replicate()]),
            "scalar": torch.tensor(2.5),
        },
        "step": 7,
    }
    dcp.save(state, checkpoint_id=folder)
    dist.destroy_process_group()


def distributed():
    mp.spawn(dcp_worker, args=(4, path("dcp")), nprocs=4)
    note("dcp", {"model.rows": numbers(7, 3), "model.cols": numbers(2, 8, dtype=torch.bfloat16),
                 "model.grid": numbers(4, 6), "model.copy": numbers(3),
                 "model.scalar": torch.tensor(2.5)})


def zero_parameters():
    return collections.OrderedDict(
        [("a.weight", numbers(3, 3)), ("a.bias", numbers(3, start=20)), ("b", numbers(5, start=40))])


def padded(flat, multiple):
    return torch.nn.functional.pad(flat, (0, -flat.numel() % multiple))


def zero2(stage, folder, world=2):
    parameters = zero_parameters()
    groups = [["a.weight", "b"], ["a.bias"]]
    shapes = [collections.OrderedDict((n, parameters[n].shape) for n in g) for g in groups]
    half = {name: p.to(torch.bfloat16) for name, p in parameters.items()}
    half["steps"] = torch.tensor([3.0])
    half["tied"] = half["b"]
    torch.save({"module": half, "buffer_names": ["steps"], "param_shapes": shapes,
                "frozen_param_shapes": None, "frozen_param_fragments": None,
                "shared_params": {"tied": "b"}, "ds_version": "0.16.0", "global_steps": 5,
                "dp_world_size": world, "mp_world_size": 1},
               path(f"{folder}/global_step5/mp_rank_00_model_states.pt"))
    for rank in range(world):
        flats = []
        for group in groups:
            flat = padded(torch.cat([parameters[n].flatten() for n in group]), 2 * world)
            flats.append(flat.chunk(world)[rank].clone())
        torch.save({"optimizer_state_dict": {"zero_stage": stage, "partition_count": [world] * 2,
                                             "single_partition_of_fp32_groups": flats},
                    "ds_version": "0.16.0"},
                   path(f"{folder}/global_step5/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"))
    with open(path(f"{folder}/latest"), "w") as file:
        file.write("global_step5")
    note(folder, parameters | {"steps": torch.tensor([3.0]), "tied": parameters["b"]})


def zero3(folder, world=2):
    parameters = zero_parameters()
    groups = [["a.weight", "b"], ["a.bias"]]
    shapes = [collections.OrderedDict((n, parameters[n].shape) for n in g) for g in groups]
    for rank in range(world):
        flats = [torch.cat([padded(parameters[n].flatten(), world).chunk(world)[rank]
                            for n in group]) for group in groups]
        torch.save({"module": {"steps": torch.tensor([3.0])}, "buffer_names": ["steps"],
                    "param_shapes": shapes, "frozen_param_shapes": None,
                    "frozen_param_fragments": None, "shared_params": {}, "ds_version": "0.16.0"},
                   path(f"{folder}/global_step9/zero_pp_rank_{rank}_mp_rank_00_model_states.pt"))
        torch.save({"optimizer_state_dict": {"zero_stage": 3, "partition_count": world,
                                             "fp32_flat_groups": flats}},
                   path(f"{folder}/global_step9/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"))
    with open(path(f"{folder}/latest"), "w") as file:
        file.write("global_step9")
    note(folder, parameters | {"steps": torch.tensor([3.0])})


def megatron(folder, ranks=2):
    whole = numbers(4, 3)
    for rank in range(ranks):
        model = {"language_model": {"w": whole.chunk(ranks)[rank].clone()}}
        torch.save({"model": model, "iteration": 10, "checkpoint_version": 3.0},
                   path(f"{folder}/iter_0000010/mp_rank_{rank:02}/model_optim_rng.pt"))
    with open(path(f"{folder}/latest_checkpointed_iteration.txt"), "w") as file:
        file.write("10")


def bin_shards(folder):
    torch.save({"a": numbers(2), "b": numbers(3)}, path(f"{folder}/pytorch_model-00001-of-00002.bin"))
    torch.save({"c": numbers(4)}, path(f"{folder}/pytorch_model-00002-of-00002.bin"))
    first, second = (f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2))
    with open(path(f"{folder}/pytorch_model.bin.index.json"), "w") as file:
        json.dump({"metadata": {}, "weight_map": {"a": first, "b": first, "c": second}}, file)
    note(folder, {"a": numbers(2), "b": numbers(3), "c": numbers(4)})


class Reference:
    def __init__(self, key):
        self.key = key


class OldPickler(pickle.Pickler):
    def persistent_id(self, value):
        return str(value.key) if isinstance(value, Reference) else None


def old_tar(name):
    """As torch 0.1 wrote it: storages, tensors and the object in three members of a tar."""
    data = list(range(6))
    storages = io.BytesIO()
    pickle.dump(2, storages, 2)
    for key, kind, code in ((11, torch.FloatStorage, "f"), (12, torch.LongStorage, "q")):
        pickle.dump((key, "cpu", kind), storages, 2)
        storages.write(struct.pack(f"<q6{code}", 6, *data))
    pickle.dump([], storages, 2)
    tensors = io.BytesIO()
    views = [(21, 11, torch.FloatTensor, (2, 3), (3, 1), 0), (22, 12, torch.LongTensor, (2,), (2,), 1)]
    pickle.dump(len(views), tensors, 2)
    for key, storage, kind, size, stride, offset in views:
        pickle.dump((key, storage, kind), tensors, 2)
        tensors.write(struct.pack(f"<ii{2 * len(size) + 1}q", len(size), 0, *size, *stride, offset))
    root = io.BytesIO()
    OldPickler(root, 2).dump(collections.OrderedDict([("w", Reference(21)), ("n", Reference(22))]))
    info = io.BytesIO(pickle.dumps({"protocol_version": 1000, "little_endian": True}, 2))
    with tarfile.open(path(name), "w", format=tarfile.PAX_FORMAT) as tar:
        for member, content in (("sys_info", info), ("pickle", root), ("tensors", tensors),
                                ("storages", storages)):
            entry = tarfile.TarInfo(member)
            entry.size = len(content.getvalue())
            content.seek(0)
            tar.addfile(entry, content)
    loaded = torch.load(path(name), weights_only=False)
    assert loaded["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["n"].tolist() == [1, 3]
    note(name, loaded)


if __name__ == "__main__":
    script_and_export()
    pickles()
    distributed()
    zero2(2, "zero2")
    zero3("zero3")
    megatron("megatron")
    bin_shards("bin_shards")
    old_tar("torch_0_1.tar")
    with open(path("truth.json"), "w") as file:
        json.dump({"torch": torch.__version__, "files": TRUTH}, file, indent=1)
