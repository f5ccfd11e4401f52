from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F


def loss(tokens, targets, p):
    batch, time = tokens.shape
    layers, embed, _, heads, size = p["w_qkv"].shape
    x = p["wte"][tokens] + p["wpe"]
    for k in range(layers):
        normed = F.layer_norm(x, (embed,), p["ln1_g"][k], p["ln1_b"][k])
        qkv = normed @ p["w_qkv"][k].reshape(embed, -1) + p["b_qkv"][k].reshape(-1)
        query, key, value = (
            z.view(batch, time, heads, size).transpose(1, 2) for z in qkv.split(embed, 2)
        )
        heard = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        heard = heard.transpose(1, 2).reshape(batch, time, embed)
        x = x + heard @ p["w_o"][k].reshape(embed, embed) + p["b_o"][k]
        normed = F.layer_norm(x, (embed,), p["ln2_g"][k], p["ln2_b"][k])
        x = x + F.gelu(normed @ p["w_fc"][k] + p["b_fc"][k]) @ p["w_pr"][k] + p["b_pr"][k]
    logits = F.layer_norm(x, (embed,), p["lnf_g"], p["lnf_b"]) @ p["wte"].T
    return F.cross_entropy(logits.view(batch * time, -1), targets.view(-1))


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(tokens, targets, **arrays):
        weights = {name: torch.from_numpy(x).requires_grad_() for name, x in arrays.items()}
        value = loss(torch.from_numpy(tokens), torch.from_numpy(targets), weights)
        grads = torch.autograd.grad(value, list(weights.values()))
        return {"value": value.detach(), **{f"grad_{n}": g for n, g in zip(weights, grads)}}

    return f
