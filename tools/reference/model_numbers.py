"""What the reference scripts share: values made by formula, and the files of numbers that tests read.

Weights, tokens and targets are a hash of (name, index) that tests/nn/formula_values.h computes too. A file has one line
per quantity: name, then numbers. A tensor is given by its fingerprint: sum, sum of squares, two projections on hashed
vectors and eight entries at hashed places.
"""
import math

import torch
import torch.nn.functional as F

MASK = (1 << 64) - 1


def formula_bits(name, index):
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def formula_values(name, count):
    return torch.tensor([(formula_bits(name, i) >> 52) / 4096 - 0.5 for i in range(count)], dtype=torch.float64)


def formula_parameter(name, shape):
    values = formula_values(name, math.prod(shape)).reshape(shape)
    is_norm = ("ln_" in name or "norm_" in name) and name.endswith(".weight")
    return 1 + values / 2 if is_norm else values / 4


def formula_integers(name, shape, bound):
    return torch.tensor([formula_bits(name, i) % bound for i in range(math.prod(shape))]).reshape(shape)


def fingerprint(name, tensor):
    flat = tensor.detach().double().flatten()
    projections = [torch.dot(flat, formula_values(f"{name}#projection{k}", len(flat))) for k in range(2)]
    samples = [flat[formula_bits(name + "#sample", k) % len(flat)] for k in range(8)]
    return [flat.sum(), flat.pow(2).sum(), *projections, *samples]


def line(name, numbers):
    return " ".join([name, *(repr(float(n)) for n in numbers)]) + "\n"


class Model:
    """A Hugging Face model seen through braid's parameter names.

    `parts` gives, for a name of braid's, the model's parameters whose rows make it up; `transposed` tells names whose
    matrices the model keeps as [inputs, outputs].
    """

    def __init__(self, model, parts, transposed=()):
        self.model = model.eval()
        named = dict(model.named_parameters())
        self.params = {name: [named[part] for part in names] for name, names in parts.items()}
        self.transposed = transposed

    def joined(self, name, values):
        return torch.cat([v.T if name in self.transposed else v for v in values])

    def value(self, name):
        return self.joined(name, [p.detach() for p in self.params[name]])

    def gradient(self, name):
        return self.joined(name, [p.grad for p in self.params[name]])

    @torch.no_grad()
    def fill(self):
        for name, parts in self.params.items():
            rows = [(p.shape[1] if name in self.transposed else p.shape[0]) for p in parts]
            shape = (sum(rows), *self.value(name).shape[1:])
            for part, values in zip(parts, formula_parameter(name, shape).split(rows)):
                part.copy_(values.T if name in self.transposed else values)

    def logits(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits

    def loss(self, logits, targets):
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return F.cross_entropy(wide.flatten(0, 1), targets.flatten())


def batch(micro, shape, vocab):
    suffix = str(micro) if micro else ""
    return formula_integers("tokens" + suffix, shape, vocab), formula_integers("targets" + suffix, shape, vocab)


def write_step(path, model, shape, vocab):
    """Logits, loss and gradients of one batch; the change of every parameter over three steps of AdamW."""
    model.fill()
    tokens, targets = batch(0, shape, vocab)
    logits = model.logits(tokens)
    loss = model.loss(logits, targets)
    loss.backward()
    with open(path, "w") as out:
        out.write(line("logits", logits.detach().flatten()))
        out.write(line("loss", [loss.detach()]))
        for name in model.params:
            out.write(line(name, fingerprint(name, model.gradient(name))))
        before = {name: model.value(name).clone() for name in model.params}
        for loss in adamw_losses(model, shape, vocab):
            out.write(line("adamw.loss", [loss]))
        for name in model.params:
            out.write(line("adamw." + name, fingerprint(name, model.value(name) - before[name])))


def adamw_losses(model, shape, vocab):
    everything = [p for parts in model.params.values() for p in parts]
    groups = [{"params": [p for p in everything if p.dim() == 2], "weight_decay": 0.1},
              {"params": [p for p in everything if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-5)
    for step in range(3):
        optimizer.zero_grad()
        tokens, targets = batch(step, shape, vocab)
        loss = model.loss(model.logits(tokens), targets)
        loss.backward()
        optimizer.step()
        yield loss.item()


def write_bfloat16_errors(path, make, shape, vocab):
    """Root mean square over eight batches of the relative error of loss and gradients in bfloat16 against float64, at
    the same weights, which are rounded to bfloat16."""
    narrow, wide = make(torch.bfloat16), make(torch.float64)
    narrow.fill()
    with torch.no_grad():
        for name in narrow.params:
            for to, source in zip(wide.params[name], narrow.params[name]):
                to.copy_(source)
    squares = {}
    for micro in range(8):
        tokens, targets = batch(micro, shape, vocab)
        losses = []
        for model in (narrow, wide):
            model.model.zero_grad()
            losses.append(model.loss(model.logits(tokens), targets))
            losses[-1].backward()
        pairs = {"loss": losses, **{n: (narrow.gradient(n), wide.gradient(n)) for n in narrow.params}}
        for name, (got, want) in pairs.items():
            error = (got.detach().double() - want.detach()).norm() / want.detach().norm()
            squares[name] = squares.get(name, 0) + error.item() ** 2 / 8
    with open(path, "w") as out:
        for name, square in squares.items():
            out.write(line(name, [math.sqrt(square)]))
