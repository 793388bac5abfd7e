"""Teacher vectors for the corpus: all-MiniLM-L6-v2, mean pooling, L2.

Reads texts.jsonl from the work folder, writes teacher/NNNN.npz (sha1 keys and float16 vectors); a second run does
only what is missing. The network is written out below: a BERT encoder is short, and nothing else is needed of it.
"""
import argparse
import hashlib
import json
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, DIM, LIMIT = 6, 12, 384, 256


def fast_halves():
    """Whether the processor multiplies bfloat16 itself; if not, single precision is many times as fast."""
    info = pathlib.Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    return "avx512_bf16" in flags or "amx_bf16" in flags


def load_tokenizer(model):
    tok = Tokenizer.from_file(str(pathlib.Path(model) / "tokenizer.json"))
    tok.enable_truncation(max_length=LIMIT)  # the file says 128
    tok.no_padding()
    return tok


class Teacher:
    def __init__(self, model, half=False):
        """half: matrix products in bfloat16, several times as fast where the processor has them."""
        self.half = half
        self.w = load_file(str(pathlib.Path(model) / "model.safetensors"))
        self.w = {k.removeprefix("bert."): v for k, v in self.w.items()}
        self.tok = load_tokenizer(model)
        for i in range(LAYERS):
            p = f"encoder.layer.{i}.attention.self."
            for kind in ("weight", "bias"):
                self.w[f"qkv.{i}.{kind}"] = torch.cat([self.w[p + x + "." + kind] for x in ("query", "key", "value")])

    def norm(self, x, name):
        return F.layer_norm(x, (DIM,), self.w[name + ".weight"], self.w[name + ".bias"], 1e-12)

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    @torch.inference_mode()
    def forward(self, ids):
        """ids: [batch, length], all of one length, so that there is no padding and no mask."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            return F.normalize(self.last(ids).float().mean(1), dim=-1).numpy()

    def last(self, ids):
        b, n = ids.shape
        e = "embeddings."
        x = (self.w[e + "word_embeddings.weight"][ids] + self.w[e + "position_embeddings.weight"][:n]
             + self.w[e + "token_type_embeddings.weight"][0])
        x = self.norm(x, e + "LayerNorm")
        for i in range(LAYERS):
            p = f"encoder.layer.{i}."
            qkv = self.linear(x, f"qkv.{i}").view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]).transpose(1, 2).reshape(b, n, DIM)
            x = self.norm(x + self.linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            h = F.gelu(self.linear(x, p + "intermediate.dense"))
            x = self.norm(x + self.linear(h, p + "output.dense"), p + "output.LayerNorm")
        return x

    def encode(self, texts, batch_tokens=2048):
        """float32 [len(texts), 384], in the order of the texts."""
        ids = [e.ids for e in self.tok.encode_batch(texts)]
        out = np.zeros((len(texts), DIM), np.float32)
        by_len = {}
        for i, t in enumerate(ids):
            by_len.setdefault(len(t), []).append(i)
        for n, rows in by_len.items():
            step = max(1, batch_tokens // n)
            for k in range(0, len(rows), step):
                part = rows[k:k + step]
                out[part] = self.forward(torch.tensor([ids[i] for i in part]))
        self.tokens = sum(map(len, ids))
        return out


def key(text):
    return np.frombuffer(hashlib.sha1(text.encode()).digest()[:8], np.uint64)[0]


def load_cache(folder):
    """key -> float16 vector, as two arrays sorted by key."""
    ks, vs = [], []
    for f in sorted(pathlib.Path(folder).glob("*.npz")):
        z = np.load(f)
        ks.append(z["keys"])
        vs.append(z["vectors"])
    if not ks:
        return np.zeros(0, np.uint64), np.zeros((0, DIM), np.float16)
    ks, vs = np.concatenate(ks), np.concatenate(vs)
    ks, first = np.unique(ks, return_index=True)
    return ks, vs[first]


def lookup(cache, texts):
    """(rows present: bool mask, vectors float32 of those present)"""
    ks, vs = cache
    want = np.array([key(t) for t in texts], np.uint64)
    at = np.minimum(np.searchsorted(ks, want), max(len(ks) - 1, 0))
    have = ks[at] == want if len(ks) else np.zeros(len(want), bool)
    return have, vs[at[have]].astype(np.float32)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--model", required=True, help="folder with model.safetensors and tokenizer.json")
    a.add_argument("--work", required=True, help="folder with texts.jsonl; teacher/ is made there")
    a.add_argument("--texts", default="texts.jsonl")
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--chunk", type=int, default=4096)
    a.add_argument("--seconds", type=float, default=1e9, help="stop after this long; run again to go on")
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    work = pathlib.Path(o.work)
    folder = work / "teacher"
    folder.mkdir(exist_ok=True)
    t = Teacher(o.model)
    texts = [json.loads(line)["text"] for line in open(work / o.texts)]
    ks, _ = load_cache(folder)
    done = set(ks.tolist())
    todo = list(dict.fromkeys(x for x in texts if int(key(x)) not in done))
    print(f"{len(texts)} texts, {len(todo)} to encode", flush=True)
    start, seen = time.time(), 0
    number = len(list(folder.glob("*.npz")))
    for i in range(0, len(todo), o.chunk):
        part = todo[i:i + o.chunk]
        v = t.encode(part)
        seen += t.tokens
        tmp = folder / f".{number:04}.tmp"
        with open(tmp, "wb") as f:
            np.savez(f, keys=np.array([key(x) for x in part], np.uint64), vectors=v.astype(np.float16))
        tmp.rename(folder / f"{number:04}.npz")
        number += 1
        now = time.time() - start
        print(f"{i + len(part)}/{len(todo)} {seen} tokens {seen / now:.0f} tokens/s", flush=True)
        if now > o.seconds:
            break


if __name__ == "__main__":
    main()
