"""Second stage: draw the token table to real pairs of a question and what answers it, and learn what counts in a text.

`teach` keeps the teacher's vectors of a sample of pairs; `train` starts from an artifact of the first stage and writes the next.

Loss, over the pairs of a batch, in which each passage but a question's own is a negative: the divergence of the student's
ranking of the passages from the teacher's, both ways (a question's passages, a passage's questions), plus a part of
cross-entropy on the pairs themselves. Half of a batch comes from few sources, so that the negatives are near.
"""
import argparse
import collections
import gzip
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

from export import describe, fixtures, pack, quantize, write
from static import Static
from teach import DIM, Teacher, fast_halves

# How many pairs of each kind get the teacher's vectors: all questions and messages, a part of what is only near to them.
SAMPLE = {"so-code": 15639, "faq": 5671, "so-cite": 357, "error": 1925, "paraphrase": 3991, "troubleshooting": 10676, "command": 14000,
          "summary": 6000, "title": 8000, "heading": 30000, "commit": 16000, "advisory": 600, "snippet": 515}
# How often a pair of a kind is drawn; 1 for the others.
OFTEN = {"so-code": 3.0, "faq": 3.0, "so-cite": 3.0, "error": 3.0, "paraphrase": 3.0, "troubleshooting": 3.0,
         "heading": 0.5, "commit": 0.5, "title": 0.5, "summary": 0.5}
TITLE_WEIGHT = 0.3
QUESTION_TOKENS, TITLE_TOKENS, PASSAGE_TOKENS = 64, 64, 320
GROUP = 128
VOCABULARY = 30522


def sample(path, seed, limit):
    """The pairs that are trained on, at most `limit` of a kind, in the file's order."""
    pairs = [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8")]
    rng, kinds = np.random.default_rng(seed), np.array([p["kind"] for p in pairs])
    chosen = [rng.permutation(np.flatnonzero(kinds == kind))[:min(most, limit)] for kind, most in SAMPLE.items()]
    return [pairs[i] for i in np.sort(np.concatenate(chosen))]


def asked(path):
    """The questions of a file of texts."""
    return [text["text"] for text in map(json.loads, gzip.open(path, "rt", encoding="utf-8")) if text["kind"] == "question"]


def teach(o):
    torch.set_num_threads(o.threads)
    teacher, pairs = Teacher(o.model, half=fast_halves()), sample(o.pairs, o.sample, o.limit)
    todo = [("questions", [p["q"] for p in pairs], o.tokens[0]), ("passages", [p["d"] for p in pairs], o.tokens[1])]
    if o.asked:
        todo.append(("asked", asked(o.asked), o.tokens[0]))
    for name, texts, limit in todo:
        teacher.tok.enable_truncation(max_length=limit)
        out, start, tokens = [], time.time(), 0
        for i in range(0, len(texts), 16384):
            out.append(teacher.encode(texts[i:i + 16384], batch_tokens=16384).astype(np.float16))
            tokens += teacher.tokens
            print(f"{name} {i + len(out[-1])}/{len(texts)} {tokens / (time.time() - start):.0f} tokens/s", flush=True)
        np.save(pathlib.Path(o.work) / f"{name}.npy", np.concatenate(out))


class Bags:
    """Texts as distinct token ids and the square roots of their counts, ragged."""

    def __init__(self, static, texts, limit):
        ids, roots, self.ptr = [], [], [0]
        for i in range(0, len(texts), 20000):
            for tokens in static.ids(texts[i:i + 20000]):
                u, c = np.unique(np.array(tokens[:limit], np.int64), return_counts=True)
                ids.append(u)
                roots.append(np.sqrt(c.astype(np.float32)))
                self.ptr.append(self.ptr[-1] + len(u))
        self.ids, self.roots, self.ptr = np.concatenate(ids), np.concatenate(roots), np.array(self.ptr)

    def encode(self, model, which):
        table, attention = model
        a, b = self.ptr[which], self.ptr[which + 1]
        n = b - a
        start = np.concatenate([[0], np.cumsum(n)])
        at = np.arange(start[-1]) - np.repeat(start[:-1], n) + np.repeat(a, n)
        ids, starts, weights = (torch.from_numpy(x) for x in (self.ids[at], start[:-1], self.roots[at]))
        bag = lambda w: F.normalize(F.embedding_bag(ids, table, starts, mode="sum", per_sample_weights=w), dim=-1, eps=1e-6)
        subject = (bag(weights) @ attention)[torch.repeat_interleave(torch.arange(len(n)), torch.from_numpy(n))]
        meant = (F.normalize(table, dim=1)[ids] * subject).sum(1)
        return bag(weights * torch.exp(meant.clamp(-3, 3)))


class Pairs:
    def __init__(self, static, pairs):
        heads = [p["d"].partition("\n") for p in pairs]
        has_title = [bool(rest.strip()) and 3 <= len(title) <= 100 for title, _, rest in heads]
        self.questions = Bags(static, [p["q"] for p in pairs], QUESTION_TOKENS)
        self.titles = Bags(static, [h[0] if t else "" for h, t in zip(heads, has_title)], TITLE_TOKENS)
        self.rests = Bags(static, [h[2] if t else p["d"] for p, h, t in zip(pairs, heads, has_title)], PASSAGE_TOKENS)
        usable = (np.diff(self.questions.ptr) > 0) & (np.diff(self.rests.ptr) > 2)
        weight = usable * np.array([OFTEN.get(p["kind"], 1.0) for p in pairs])
        self.cumulated = np.cumsum(weight / weight.sum())
        self.source = np.unique([p["source"] for p in pairs], return_inverse=True)[1]
        self.by_source = [np.flatnonzero((self.source == s) & usable) for s in range(self.source.max() + 1)]

    def seen(self):
        """In how many texts each token occurs."""
        return sum(np.bincount(b.ids, minlength=VOCABULARY) for b in (self.questions, self.titles, self.rests))

    def passages(self, model, which):
        """A passage as the program encodes a memory."""
        return F.normalize(TITLE_WEIGHT * self.titles.encode(model, which) + self.rests.encode(model, which), dim=-1, eps=1e-6)

    def draw(self, rng, n):
        return np.searchsorted(self.cumulated, rng.random(n)).clip(0, len(self.cumulated) - 1)

    def batch(self, rng, size, group=GROUP):
        parts, have = [self.draw(rng, size // 2)], size // 2
        while have < size:
            source = self.by_source[self.source[self.draw(rng, 1)[0]]]
            parts.append(rng.choice(source, min(group, size - have, len(source)), replace=False))
            have += len(parts[-1])
        return np.unique(np.concatenate(parts))


def divergence(student, teacher, o):
    return F.kl_div(F.log_softmax(student / o.tau, 1), F.softmax(teacher / o.tau, 1), reduction="batchmean")


def train_model(start, pairs, teacher, o):
    rng = np.random.default_rng(o.seed)
    table = torch.from_numpy(start.copy()).requires_grad_()
    attention = torch.zeros(table.shape[1], table.shape[1], requires_grad=True)
    model, rates = (table, attention), (o.lr, o.attention_lr)
    adam = torch.optim.Adam([{"params": [p]} for p in model], lr=o.lr, betas=(0.9, 0.98), eps=1e-6)
    steps, started = int(o.epochs * len(pairs.source) / o.batch), time.time()
    for step in range(steps):
        which = pairs.batch(rng, o.batch)
        student = pairs.questions.encode(model, which) @ pairs.passages(model, which).T
        q, d = (torch.from_numpy(v[which].astype(np.float32)) for v in teacher)
        wanted, own = q @ d.T, torch.arange(len(which))
        loss = divergence(student, wanted, o) + o.backwards * divergence(student.T, wanted.T, o)
        hard = F.cross_entropy(student / o.tau, own) + o.backwards * F.cross_entropy(student.T / o.tau, own)
        for group, rate in zip(adam.param_groups, rates):
            group["lr"] = rate * min(1, (step + 1) / 30) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6
        adam.zero_grad()
        (loss + o.contrast * hard).backward()
        adam.step()
        if (step + 1) % 20 == 0 or step + 1 == steps:
            print(f"{step + 1}/{steps} {time.time() - started:.0f}s divergence {loss.item():.3f} cross-entropy {hard.item():.3f}", flush=True)
    return table.detach().numpy(), attention.detach().numpy()


def settle(start, table, seen, like=10.0, often=40):
    """Rows that few texts moved go where the others went, as if `like` texts more had said so."""
    known = np.linalg.norm(start, axis=1) > 0
    good = known & (seen >= often)
    a, b = start[good], table[good]
    turn = np.linalg.solve(a.T @ a + np.eye(a.shape[1]), a.T @ b)
    guess = start @ turn * np.median(np.linalg.norm(b, axis=1) / np.linalg.norm(a @ turn, axis=1))
    n = seen[:, None].astype(np.float64)
    return np.where(known[:, None], (n * table + like * guess) / (n + like), table).astype(np.float32)


def project(model, pairs, teacher):
    """The linear map from the teacher's centred vectors of passages to the table's, by least squares."""
    x = teacher.astype(np.float32)
    mean = x.mean(0)
    x = x - mean
    with torch.no_grad():
        parts = np.array_split(np.arange(len(x)), len(x) // 4096 + 1)
        y = np.concatenate([pairs.passages(tuple(map(torch.from_numpy, model)), part).numpy() for part in parts])
    return mean, np.ascontiguousarray(np.linalg.solve(x.T @ x + 10 * np.eye(DIM), x.T @ y).T.astype(np.float32))


def train(o):
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    work, out = pathlib.Path(o.work), pathlib.Path(o.out)
    first = Static(o.first)
    start = np.zeros((VOCABULARY, first.rows.shape[1]), np.float32)
    start[first.kept] = first.rows.astype(np.float32) * first.scales[:, None]
    data = sample(o.pairs, o.sample, o.limit)
    pairs = Pairs(first, data)
    teacher = [np.load(work / f"{name}.npy") for name in ("questions", "passages")]
    assert len(teacher[0]) == len(teacher[1]) == len(data), "run `teach` on the same pairs first"
    table, attention = train_model(start, pairs, teacher, o)
    table = settle(start, table, pairs.seen())
    mean, projection = project((table, attention), pairs, teacher[1])
    rows = table[first.kept]
    rows, scales = quantize(rows / np.median(np.linalg.norm(rows, axis=1)))
    tensors = {"rows": rows, "scales": scales, "mean": mean, "projection": projection, "attention": attention, "kept": first.kept,
               "all_vocab": np.frombuffer("\n".join(first.all_vocab).encode(), np.uint8)}
    refined = {k: v for k, v in vars(o).items() if k in ("tau", "lr", "epochs", "batch", "contrast", "backwards", "attention_lr", "seed")}
    meta = first.meta | {"version": o.version, "trained": o.date, "refined_pairs": str(len(data)), "refined": json.dumps(refined),
                         "refined_kinds": json.dumps(dict(sorted(collections.Counter(p["kind"] for p in data).items())))}
    write(out / "static.safetensors", pack(tensors, meta))
    fixtures(out, o.model)
    describe(out / "static.safetensors")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("what", choices=["teach", "train"])
    a.add_argument("--model", required=True, help="folder with model.safetensors and tokenizer.json")
    a.add_argument("--work", required=True, help="folder for the teacher's vectors")
    a.add_argument("--pairs", required=True, help="lines of q, d, source and kind, gzip")
    a.add_argument("--sample", type=int, default=3, help="seed of the sample of pairs")
    a.add_argument("--limit", type=int, default=10 ** 6, help="the most pairs of a kind")
    a.add_argument("--asked", help="teach: texts, gzip, whose questions are taught too (asked.npy)")
    a.add_argument("--tokens", type=int, nargs=2, default=[48, 128], help="teach: the most tokens of a question and of a passage")
    a.add_argument("--first", help="the artifact of the first stage")
    a.add_argument("--out", default=str(pathlib.Path(__file__).parent))
    a.add_argument("--version")
    a.add_argument("--date", help="of the training, YYYY-MM-DD")
    a.add_argument("--tau", type=float, default=0.05)
    a.add_argument("--lr", type=float, default=0.002)
    a.add_argument("--attention-lr", type=float, default=0.01)
    a.add_argument("--epochs", type=float, default=4.0)
    a.add_argument("--batch", type=int, default=2048)
    a.add_argument("--contrast", type=float, default=0.2)
    a.add_argument("--backwards", type=float, default=0.3)
    a.add_argument("--seed", type=int, default=7)
    a.add_argument("--threads", type=int, default=1)
    o = a.parse_args()
    {"teach": teach, "train": train}[o.what](o)


if __name__ == "__main__":
    main()
