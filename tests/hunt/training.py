"""Trains a small model for a few steps, so that its activations have outliers, for hooks.py.

A model that predicts tokens learns periodic sequences; any other learns to do what a model of the
same kind with other weights does. Runs on a GPU where there is one.
"""
import copy

import torch

PERIODS = (2, 3, 5)


def patterns(like):
    """Token ids of that shape that repeat with a period, so that there is something to learn."""
    batch, length = like.shape
    period = PERIODS[int(torch.randint(len(PERIODS), (1,)))]
    once = torch.randint(3, 96, (batch, period), device=like.device)
    return once.repeat(1, length // period + 1)[:, :length]


def fresh(inputs):
    """Other inputs of the same shapes."""
    return {key: patterns(value) if not value.is_floating_point() else torch.randn_like(value)
            for key, value in inputs.items()}


def output_of(made):
    """The first floating-point tensor of what a model gave."""
    if torch.is_tensor(made):
        return made if made.is_floating_point() else None
    parts = made.values() if isinstance(made, dict) else made
    return next((found for found in map(output_of, parts) if found is not None), None)


def redrawn(model):
    """The same model with other weights."""
    teacher = copy.deepcopy(model)
    with torch.no_grad():
        for weight in teacher.parameters():
            size = weight[0].numel() ** -0.5 if weight.ndim > 1 else 0.1
            weight.add_(torch.randn_like(weight) * size)
    return teacher.eval()


def trained(model, inputs, steps, rate=3e-3):
    """The model after so many steps; says what the loss was and is."""
    where = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(where).train()
    inputs = {key: value.to(where) for key, value in inputs.items()}
    ids = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
    teacher = redrawn(model)
    adam = torch.optim.AdamW(model.parameters(), rate)
    first = last = None
    for _ in range(steps):
        given = fresh(inputs)
        made = output_of(model(**given))
        if ids in given and made.ndim == 3 and made.shape[-1] == 96:
            loss = torch.nn.functional.cross_entropy(made[:, :-1].flatten(0, 1),
                                                     given[ids][:, 1:].flatten())
        else:
            with torch.no_grad():
                wanted = output_of(teacher(**given))
            loss = torch.nn.functional.mse_loss(made, wanted)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        last = loss.item()
        first = last if first is None else first
    print(f"{steps} steps on {where}: loss {first:.4g}, then {last:.4g}", flush=True)
    return model.cpu().eval()
