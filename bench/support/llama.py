"""Llama 3.2 1B in PyTorch, for the peers of benches: sizes, transformer block, model with tied embedding."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, FFN, HEADS, KV_HEADS, LAYERS, BASE = 128256, 2048, 8192, 32, 8, 16, 500000.0
HEAD = WIDTH // HEADS


def angles(positions):
    frequencies = BASE ** (-torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD)
    angle = torch.outer(torch.arange(positions, dtype=torch.float64), frequencies).repeat(1, 2)
    return angle.cos().float(), angle.sin().float()


def turned(x, cos, sin):
    low, high = x.chunk(2, -1)
    return (x * cos + torch.cat((-high, low), -1) * sin).to(x.dtype)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.projection = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up, self.down = nn.Linear(WIDTH, 2 * FFN, bias=False), nn.Linear(FFN, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        q, k, v = (s.view(b, t, -1, HEAD).transpose(1, 2)
                   for s in self.qkv(self.norm_1(x)).split((WIDTH, KV_HEADS * HEAD, KV_HEADS * HEAD), -1))
        y = F.scaled_dot_product_attention(turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.projection(y.transpose(1, 2).reshape(b, t, c))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm_f = nn.RMSNorm(WIDTH, eps=1e-5)
        for name, table in zip(("cos", "sin"), angles(context)):
            self.register_buffer(name, table, persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = F.linear(self.norm_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
