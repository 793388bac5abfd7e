"""A small transformer beside the static table: it reads a text in context, and its vector is added to the static one.

Three layers of the teacher (0, 2 and 5), with the more active half of their inner units; the teacher's token vectors as a product
quantization. Trained on the pairs and the teacher's vectors of `refine.py teach`.
"""
import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from refine import QUESTION_TOKENS, Bags, Pairs, asked, sample
from static import Static
from teach import DIM, HEADS, fast_halves

CLS, SEP = 101, 102
POSITIONS = 256
SHORT = 380  # characters of a passage
WINDOW, MEMORY = 128, 512  # the tokens of a window, with the special ones, and of a memory
LATER = 0.3  # how much each window counts after the first one
BATCH, GROUP, CHUNK, TAU = 128, 32, 8, 0.05
NEAR = 64  # questions and passages of a group are drawn from so many nearest ones


def rounded(x):
    """Each row in the 128 steps from its smallest to its largest number, as the program multiplies it."""
    least, most = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
    step = ((most - least) / 127).clamp(min=torch.finfo(torch.float32).tiny)
    zero = (-least / step).round()
    return ((x * (1 / step) + zero).round().clamp(0, 127) - zero) * step


class Linear(nn.Linear):
    """In evaluation, rounds its input as the program does."""

    def forward(self, x):
        return super().forward(x if self.training else rounded(x))


class Layer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.qkv, self.out = Linear(DIM, 3 * DIM), Linear(DIM, DIM)
        self.up, self.down = Linear(DIM, inner), Linear(inner, DIM)
        self.n1, self.n2 = nn.LayerNorm(DIM, 1e-12), nn.LayerNorm(DIM, 1e-12)

    def forward(self, x, mask):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(2, 3) * (DIM // HEADS) ** -0.5  # on processors, many times as fast as the fused function
        a = ((scores if mask is None else scores + mask.to(scores.dtype)).softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(b, n, DIM)
        x = self.n1(x + self.out(a))
        return self.n2(x + self.down(F.gelu(self.up(x))))


class Contextual(nn.Module):
    """ids [batch, length] and lengths to unit vectors in the static table's space."""

    def __init__(self, layers, inner, emb, out):
        super().__init__()
        self.register_buffer("emb", emb)
        self.pos = nn.Parameter(torch.zeros(POSITIONS, DIM))
        self.n0, self.head = nn.LayerNorm(DIM, 1e-12), Linear(DIM, out)
        self.layers = nn.ModuleList(Layer(inner) for _ in range(layers))

    def hidden(self, ids, lengths):
        n = ids.shape[1]
        x = self.n0(self.emb[ids] + self.pos[:n])
        keep = torch.arange(n)[None] < lengths[:, None]
        mask = None if bool(keep.all()) else torch.where(keep, 0.0, -1e4)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return (x.float() * keep[..., None]).sum(1) / lengths[:, None]

    def encode(self, rows):
        """Texts as arrays of ids, in chunks of similar length."""
        order, parts = np.argsort([len(r) for r in rows], kind="stable"), []
        for part in np.array_split(order, max(1, len(rows) // CHUNK)):
            with torch.autocast("cpu", torch.bfloat16, enabled=fast_halves()):
                parts.append(self.hidden(*pad([rows[i] for i in part])))
        h = torch.cat(parts)[torch.from_numpy(np.argsort(order))]
        return F.normalize(self.head(F.normalize(h, dim=-1)), dim=-1)


def pad(rows):
    out = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for i, row in enumerate(rows):
        out[i, :len(row)] = row
    return torch.from_numpy(out), torch.tensor([len(row) for row in rows])


def tokens(static, texts, limit):
    """With the parts of words in camel case, between [CLS] and [SEP]."""
    return [np.array([CLS, *ids[:limit - 2], SEP], np.int64) for ids in static.ids([static.with_parts(t) for t in texts])]


def k_means(x, weight, k, rng, rounds=10):
    centres = x[rng.choice(len(x), k, replace=False, p=weight / weight.sum())].copy()
    nearest = lambda: ((centres * centres).sum(1)[None] - 2 * x @ centres.T).argmin(1)
    for _ in range(rounds):
        which = nearest()
        n = np.bincount(which, weight, k)
        sums = np.stack([np.bincount(which, weight * column, k) for column in x.T], 1)
        centres = np.where(n[:, None] > 0, sums / np.maximum(n, 1e-9)[:, None], x[rng.integers(len(x), size=k)])
    return centres, nearest()


def quantize_tokens(table, weight, parts=64):
    """Product quantization after a rotation that spreads the variance evenly: one byte for each of `parts` pieces."""
    rng = np.random.default_rng(7)
    mean = np.average(table, 0, weight)
    x, size = table - mean, DIM // parts
    values, vectors = np.linalg.eigh((x * weight[:, None]).T @ x / weight.sum())
    pieces, load = [[] for _ in range(parts)], np.zeros(parts)
    for axis in np.argsort(-values):
        piece = min((p for p in range(parts) if len(pieces[p]) < size), key=lambda p: load[p])
        pieces[piece].append(axis)
        load[piece] += math.log(values[axis] + 1e-9)
    turn = vectors[:, [axis for piece in pieces for axis in piece]]
    books, codes = zip(*(k_means(part, weight, 256, rng) for part in np.split(x @ turn, parts, 1)))
    tensors = {"token_codes": torch.from_numpy(np.stack(codes, 1)).to(torch.uint8), "token_turn.bias": torch.from_numpy(mean)}
    for name, value in (("token_books", np.stack(books).reshape(parts, -1)), ("token_turn.weight", turn)):
        tensors[name], tensors[name + ".scale"] = in_bytes(torch.from_numpy(value))
    return {k: v if v.dtype in (torch.int8, torch.uint8) else v.float() for k, v in tensors.items()}


def in_bytes(matrix):
    """Signed bytes, and the factor of each row."""
    scale = matrix.abs().amax(1).clamp(min=1e-12) / 127
    return (matrix / scale[:, None]).round().to(torch.int8), scale.float()


def token_table(parts):
    """The tokens' vectors as the program computes them."""
    floats = lambda name: parts[name].float() * parts[name + ".scale"][:, None]
    codes = parts["token_codes"].long()
    books = floats("token_books").view(codes.shape[1], 256, -1)
    pieces = torch.cat([book[column] for book, column in zip(books, codes.T)], 1)
    return rounded(pieces) @ floats("token_turn.weight").T + parts["token_turn.bias"]


def from_teacher(path, which, inner, emb, static, texts):
    """The chosen layers, with the units of the largest mean activation times outgoing weight."""
    w = {k.removeprefix("bert."): v for k, v in load_file(str(pathlib.Path(path) / "model.safetensors")).items()}

    def build(inner, keep=None):
        model = Contextual(len(which), inner, emb, len(static.projection))
        pair = lambda name: (w[name + ".weight"].clone(), w[name + ".bias"].clone())
        put = lambda module, values: (setattr(module.weight, "data", values[0]), setattr(module.bias, "data", values[1]))
        model.pos.data = w["embeddings.position_embeddings.weight"][:POSITIONS] + w["embeddings.token_type_embeddings.weight"][0]
        put(model.n0, pair("embeddings.LayerNorm"))
        for j, (layer, i) in enumerate(zip(model.layers, which)):
            p = f"encoder.layer.{i}."
            parts = [pair(p + "attention.self." + x) for x in ("query", "key", "value")]
            put(layer.qkv, [torch.cat(x) for x in zip(*parts)])
            put(layer.out, pair(p + "attention.output.dense"))
            put(layer.n1, pair(p + "attention.output.LayerNorm"))
            put(layer.n2, pair(p + "output.LayerNorm"))
            (up, bias), (down, down_bias) = pair(p + "intermediate.dense"), pair(p + "output.dense")
            k = torch.arange(len(up)) if keep is None else keep[j]
            put(layer.up, (up[k], bias[k]))
            put(layer.down, (down[:, k], down_bias))
        projection, mean = torch.from_numpy(static.projection), torch.from_numpy(static.mean)
        put(model.head, (projection.clone(), -(projection @ mean)))
        return model

    full = build(4 * DIM)
    activity = [torch.zeros(4 * DIM) for _ in which]
    for layer, sums in zip(full.layers, activity):
        layer.up.register_forward_hook(lambda _, __, out, sums=sums: sums.add_(F.gelu(out.float()).abs().sum((0, 1))))
    with torch.inference_mode():
        full.hidden(*pad(texts))
    keep = [torch.argsort(-(a * layer.down.weight.norm(dim=0)))[:inner].sort()[0] for a, layer in zip(activity, full.layers)]
    return build(inner, keep)


def divergence(student, teacher):
    return F.kl_div(F.log_softmax(student / TAU, 1), F.softmax(teacher / TAU, 1), reduction="batchmean")


class Asked:
    """Questions without an answer: the teacher alone says which passages are near to them."""

    def __init__(self, static, texts, limit, vectors, passages):
        self.ids, self.bags = tokens(static, texts, limit), Bags(static, [static.with_parts(t) for t in texts], QUESTION_TOKENS)
        self.usable, self.vectors, self.passages = np.diff(self.bags.ptr) > 0, vectors, passages

    def group(self, rng):
        """Some of the questions nearest to one of them, and some of the passages nearest to it."""
        near = lambda vectors: rng.choice(np.argpartition(-vectors @ seed, NEAR)[:NEAR], GROUP, replace=False)
        seed = self.vectors[rng.integers(len(self.vectors))]
        questions = near(self.vectors)
        return questions[self.usable[questions]], near(self.passages)


def fit(model, static, pairs, data, teacher, others, o):
    rng, floats = np.random.default_rng(o.seed), lambda x: torch.from_numpy(np.asarray(x, np.float32))
    q, d = (tokens(static, [p[field] for p in data], limit) for field, limit in zip("qd", o.tokens))
    table = torch.zeros(len(static.all_vocab), static.rows.shape[1])
    table[torch.from_numpy(static.kept.astype(np.int64))] = floats(static.rows) * floats(static.scales)[:, None]
    fixed = (table, floats(static.attention))
    projection, mean = floats(static.projection), floats(static.mean)
    parameters, started = list(model.parameters()), time.time()
    adam = torch.optim.AdamW(parameters, lr=o.lr, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(o.steps):
        for group in adam.param_groups:
            group["lr"] = o.lr * min(1, (step + 1) / 40) * 0.5 * (1 + math.cos(math.pi * step / o.steps)) + 1e-6
        more, near = others.group(rng) if others else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        own = pairs.batch(rng, BATCH - len(near), GROUP)
        which = np.concatenate([own, np.setdiff1d(near, own)])
        texts = [q[i] for i in own] + [others.ids[i] for i in more]
        cq, cd = model.encode(texts), model.encode([d[i] for i in which])
        with torch.no_grad():
            sq, sd = pairs.questions.encode(fixed, own), pairs.passages(fixed, which)
            tq, td = (floats(v[some]) for v, some in zip(teacher, (own, which)))
            if len(more):
                sq, tq = torch.cat([sq, others.bags.encode(fixed, more)]), torch.cat([tq, floats(others.vectors[more])])
        vq, vd, wanted = F.normalize(sq + cq, dim=-1), F.normalize(sd + cd, dim=-1), tq @ td.T
        both = vq @ vd.T
        far = sum(1 - F.cosine_similarity(c, (t - mean) @ projection.T).mean() for c, t in ((cq, tq), (cd, td)))
        ranking = divergence(both, wanted) + 0.3 * divergence(both.T, wanted.T)
        alone = 0.3 * divergence(vq @ sd.T, wanted) + 0.5 * divergence(cq @ cd.T, wanted)
        pairs_alone = F.cross_entropy(both[:len(own)] / TAU, torch.arange(len(own)))
        loss = ranking + alone + 2 * far + o.contrast * pairs_alone
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        if (step + 1) % 20 == 0:
            print(f"{step + 1}/{o.steps} {time.time() - started:.0f}s loss {loss.item():.3f} ranking {ranking.item():.3f}", flush=True)


def load(path):
    """The network of an artifact, and the parts of its token table."""
    w = load_file(str(path))
    parts = {k: w.pop(k) for k in list(w) if k.startswith("token_")}
    scales = {k: w.pop(k) for k in list(w) if k.endswith(".scale")}
    w = {k: v.float() * scales[k + ".scale"][:, None] if k + ".scale" in scales else v for k, v in w.items()}
    layers = sum(k.endswith(".qkv.weight") for k in w)
    model = Contextual(layers, len(w["layers.0.up.bias"]), token_table(parts), len(w["head.bias"]))
    model.pos = nn.Parameter(w["pos"])
    model.load_state_dict({"emb": model.emb} | w)
    return model, parts


def named(path):
    """The name and the version of an artifact."""
    with safe_open(path, "pt") as artifact:
        return "{name} {version}".format(**artifact.metadata())


def memory(model, static, text):
    """The windows of a memory, and its vector, as the program computes it."""
    (ids,) = static.ids([static.with_parts(text)])
    ids = ids[:MEMORY]
    count = max(1, math.ceil(len(ids) / (WINDOW - 2)))
    size = max(1, math.ceil(len(ids) / count))
    windows = [np.array([CLS, *ids[i:i + size], SEP], np.int64) for i in range(0, max(1, len(ids)), size)]
    with torch.inference_mode():
        vectors = [F.normalize(model.head(F.normalize(model.hidden(*pad([w])), dim=-1)), dim=-1)[0] for w in windows]
    return windows, F.normalize(vectors[0] + LATER * sum(vectors[1:]), dim=-1)


def fixtures(path, static):
    """What the network makes of a few texts, for the tests of other implementations."""
    model = load(path)[0].eval()
    out = pathlib.Path(__file__).parent / "reference"
    texts = [t["text"] for t in json.loads((out / "teacher.json").read_text())]
    lines = []
    for text in [*texts, "\n".join(texts)]:
        windows, vector = memory(model, static, text)
        values = ",".join(f"{x:.6f}" for x in vector.tolist())
        lines.append(f'{{"text": {json.dumps(text)}, "windows": {json.dumps([len(w) for w in windows])}, "vector": [{values}]}}')
    (out / "contextual.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


def export(path, model, parts, meta):
    """Matrices as bytes with a scale for each row, the rest as floats."""
    tensors = dict(parts)
    for name, value in model.state_dict().items():
        if name == "pos":
            value = value[:WINDOW]
        if name != "emb" and value.dim() == 2:
            tensors[name], tensors[name + ".scale"] = in_bytes(value)
        elif name != "emb":
            tensors[name] = value.float()
    save_file({k: v.contiguous() for k, v in tensors.items()}, path, metadata=meta)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--model", required=True, help="folder of the teacher")
    a.add_argument("--work", required=True, help="folder with questions.npy and passages.npy, by refine.py teach")
    a.add_argument("--pairs", required=True, help="the same pairs")
    a.add_argument("--out", default=str(pathlib.Path(__file__).parent / "contextual.safetensors"))
    a.add_argument("--version", default="0")
    a.add_argument("--start", help="the artifact of an earlier run, to go on from it")
    a.add_argument("--sample", type=int, default=3, help="seed of the sample of pairs, as for `refine.py teach`")
    a.add_argument("--limit", type=int, default=10 ** 6, help="the most pairs of a kind")
    a.add_argument("--asked", help="texts, gzip, whose questions `refine.py teach` taught too")
    a.add_argument("--tokens", type=int, nargs=2, default=[32, 96], help="the most tokens of a question and of a passage")
    a.add_argument("--short", type=float, default=1, help="how often a short passage is drawn, relative to a long one")
    a.add_argument("--layers", type=int, nargs="+", default=[0, 2, 5], help="layers of the teacher to start from")
    a.add_argument("--inner", type=int, default=768, help="inner units of a layer")
    a.add_argument("--steps", type=int, default=900)
    a.add_argument("--lr", type=float, default=6e-4)
    a.add_argument("--contrast", type=float, default=0.2, help="the share of cross-entropy")
    a.add_argument("--seed", type=int, default=7)
    a.add_argument("--average", action="store_true", help="write the mean of the weights before and after")
    a.add_argument("--threads", type=int, default=2)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    static, data = Static(pathlib.Path(__file__).parent / "static.safetensors"), sample(o.pairs, o.sample, o.limit)
    teacher = [np.load(pathlib.Path(o.work) / f"{name}.npy", mmap_mode="r") for name in ("questions", "passages")]
    assert len(teacher[0]) == len(teacher[1]) == len(data), "run `refine.py teach` on the same pairs first"
    pairs = Pairs(static, data)
    weights = np.diff(pairs.cumulated, prepend=0) * np.where(np.array([len(p["d"]) for p in data]) > SHORT, 1, o.short)
    pairs.cumulated = np.cumsum(weights / weights.sum())
    table = load_file(str(pathlib.Path(o.model) / "model.safetensors"))
    table = next(v for k, v in table.items() if k.endswith("word_embeddings.weight")).numpy()
    if o.start:
        model, parts = load(o.start)
        assert o.tokens[1] <= len(model.pos), f"{o.start} has {len(model.pos)} positions"
    else:
        parts = quantize_tokens(table, np.sqrt(pairs.seen() + 1.0))
        texts = tokens(static, [p["d"] for p in data[:200]], o.tokens[1])
        model = from_teacher(o.model, o.layers, o.inner, token_table(parts), static, texts)
    others = None
    if o.asked:
        vectors, passages = np.load(pathlib.Path(o.work) / "asked.npy").astype(np.float32), np.asarray(teacher[1], np.float32)
        others = Asked(static, asked(o.asked), o.tokens[0], vectors, passages)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    fit(model, static, pairs, data, teacher, others, o)
    if o.average:
        model.load_state_dict({k: (v + before[k]) / 2 for k, v in model.state_dict().items()})
    settings = {k: getattr(o, k) for k in ("sample", "limit", "tokens", "short", "layers", "inner", "steps", "lr", "contrast", "seed", "average")}
    settings |= {"start": o.start and named(o.start), "asked": bool(o.asked)}
    export(o.out, model, parts, {"name": "contextual-minilm", "version": o.version, "settings": json.dumps(settings)})
    fixtures(o.out, static)


if __name__ == "__main__":
    main()
