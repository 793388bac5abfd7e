"""Train the token table: normalize(sum of f(count) * row) is to land where the teacher puts the text.

Loss: 1 - cosine to the teacher's centred, projected vector; plus, on pairs (heading or question, passage), a contrastive
term against the passages of the batch, encoded by the student and by the teacher. Writes a .npz that export.py reads.
"""
import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

from teach import DIM, Teacher, load_cache, load_tokenizer, lookup

DAMPING = {"count": lambda c: c, "sqrt": np.sqrt, "log": lambda c: 1 + np.log(c)}


def damp(name, c):
    return DAMPING[name](c).astype(np.float32)


class Bags:
    """Texts as (token ids, counts), ragged."""

    def __init__(self, tok, texts):
        unk = tok.token_to_id("[UNK]")
        ids, counts, self.ptr = [], [], [0]
        for e in tok.encode_batch(texts, add_special_tokens=False):
            u, c = np.unique([i for i in e.ids[:254] if i != unk] or [0], return_counts=True)
            ids.append(u)
            counts.append(c)
            self.ptr.append(self.ptr[-1] + len(u))
        self.ids, self.counts, self.ptr = np.concatenate(ids), np.concatenate(counts).astype(np.float32), np.array(self.ptr)

    def __len__(self):
        return len(self.ptr) - 1

    def rows(self, which):
        """(ids, counts, offsets) of these texts, flat."""
        a, b = self.ptr[which], self.ptr[which + 1]
        n = b - a
        off = np.concatenate([[0], np.cumsum(n)])
        at = np.arange(off[-1]) - np.repeat(off[:-1], n) + np.repeat(a, n)
        return self.ids[at], self.counts[at], off[:-1]


def encode(table, bags, which, damping, drop=0.0):
    ids, counts, off = bags.rows(which)
    w = damp(damping, counts)
    if drop:
        w = w * (np.random.random(len(w)) >= drop)
    return F.normalize(F.embedding_bag(torch.from_numpy(ids.astype(np.int64)), table, torch.from_numpy(off), mode="sum",
                                       per_sample_weights=torch.from_numpy(w.astype(np.float32))), dim=-1)


class RowAdam:
    """Adam that touches the rows of the batch alone; one second moment a row."""

    def __init__(self, table, lr):
        self.t, self.lr = table, lr
        self.m, self.v, self.n = torch.zeros_like(table), torch.zeros(len(table)), torch.zeros(len(table))

    def step(self, rows, g, lr):
        self.n[rows] += 1
        n = self.n[rows]
        m = self.m[rows].mul_(0.9).add_(g, alpha=0.1)
        v = self.v[rows].mul_(0.99).add_(g.pow(2).mean(1), alpha=0.01)
        self.m[rows], self.v[rows] = m, v
        d = m / (1 - 0.9 ** n)[:, None] / ((v / (1 - 0.99 ** n)).sqrt() + 1e-9)[:, None]
        self.t[rows] -= lr * d


def token_vectors(model, folder):
    """Each token alone through the teacher (cached)."""
    f = pathlib.Path(folder) / "tokens.npy"
    if not f.exists():
        t = Teacher(model)
        n = t.tok.get_vocab_size()
        ids = torch.stack([torch.full((n,), 101), torch.arange(n), torch.full((n,), 102)], 1)
        np.save(f, np.concatenate([t.forward(ids[i:i + 512]) for i in range(0, n, 512)]))
    return np.load(f)


def ndcg(q, d, gold, which=None):
    """nDCG@10 and MRR@10 with one relevant document a query."""
    s = q @ d.T
    rank = (s > s[np.arange(len(q)), gold][:, None]).sum(1)
    return float(np.where(rank < 10, 1 / np.log2(rank + 2), 0).mean()), float(np.where(rank < 10, 1 / (rank + 1), 0).mean())


class Data:
    def __init__(self, work, model, distractors=4000):
        self.tok = load_tokenizer(model)
        self.tok.no_truncation()
        self.vocab = [self.tok.id_to_token(i) for i in range(self.tok.get_vocab_size())]
        cache = load_cache(work / "teacher")
        texts = [json.loads(x) for x in open(work / "texts.jsonl")]
        texts = list({t["text"]: t for t in reversed(texts)}.values())[::-1]
        have, vec = lookup(cache, [t["text"] for t in texts])
        self.texts = [t for t, h in zip(texts, have) if h]
        self.vec = vec
        self.bags = Bags(self.tok, [t["text"] for t in self.texts])
        self.held = np.array([t["split"] == "heldout" for t in self.texts])
        self.kind = np.array([t["kind"] for t in self.texts])
        at = {t["text"]: i for i, t in enumerate(self.texts)}
        pairs = [json.loads(x) for x in open(work / "pairs.jsonl")]
        pairs = [(at[p["query"]], at[p["doc"]], p["kind"], p["split"]) for p in pairs if p["query"] in at and p["doc"] in at]
        self.pairs = np.array([p[:2] for p in pairs if p[3] == "train"])
        test = [p for p in pairs if p[3] == "heldout"]
        self.test_kind = np.array([p[2] for p in test])
        self.test_q = np.array([p[0] for p in test])
        docs = sorted({p[1] for p in test})
        more = [p[1] for p in pairs if p[3] == "train"][:distractors]
        self.pool = np.array(list(dict.fromkeys(docs + more)))
        where = {d: i for i, d in enumerate(self.pool)}
        self.gold = np.array([where[p[1]] for p in test])
        self.train = np.flatnonzero(~self.held)
        self.mean = self.vec[self.train].mean(0)
        v = np.bincount(self.bags.rows(self.train)[0], minlength=self.tok.get_vocab_size())
        self.df = v
        c = self.bags.rows(self.train)
        self.p = np.bincount(c[0], c[1], minlength=len(v)) / c[1].sum()

    def project(self, dim):
        """(projection [dim, 384] or None, unit targets [n, dim])"""
        x = self.vec - self.mean
        x /= np.linalg.norm(x, axis=1, keepdims=True) + 1e-9
        if dim == DIM:
            return None, x
        s = x[self.train]
        w, u = np.linalg.eigh(s.T @ s)
        proj = np.ascontiguousarray(u[:, ::-1][:, :dim].T)
        y = x @ proj.T
        return proj.astype(np.float32), (y / np.linalg.norm(y, axis=1, keepdims=True)).astype(np.float32)


def evaluate(data, table, target, damping):
    """On held-out texts: cosine by kind; retrieval (tt: teacher on both sides, ss: student, st: student to teacher)."""
    need = np.unique(np.concatenate([np.flatnonzero(data.held), data.pool]))
    s = np.zeros((len(target), table.shape[1]), np.float32)
    with torch.no_grad():
        for i in range(0, len(need), 4096):
            s[need[i:i + 4096]] = encode(table, data.bags, need[i:i + 4096], damping).numpy()
    cos = np.where(data.held, (s * target).sum(1), 0)
    out = {"cos_" + k: float(cos[data.held & (data.kind == k)].mean()) for k in ("short", "question", "error", "medium", "long")}
    out["cos"] = float(cos[data.held].mean())
    for name, q, d in (("tt", target, target), ("ss", s, s), ("st", s, target)):
        q, d = q[data.test_q], d[data.pool]
        out[name], out[name + "_mrr"] = ndcg(q, d, data.gold)
        for k in ("title", "question", "keywords"):
            w = data.test_kind == k
            out[f"{name}_{k}"] = ndcg(q[w], d, data.gold[w])[0]
    return out


def brief(r):
    return " ".join(f"{k}={v:.4f}" for k, v in r.items() if "_mrr" not in k)


def init_table(data, tokens, proj):
    x = tokens - data.mean
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    if proj is not None:
        x = x @ proj.T
    sif = 1e-3 / (1e-3 + data.p)
    return torch.from_numpy((x * sif[:, None]).astype(np.float32))


def smooth(table, init, df, vocab, k, seen=40, ridge=5.0, turn=0.7):
    """Rows seen in few texts are drawn to a guess, as if they had been seen in k texts more that agreed with it.

    Its direction: the initial vector, turned as the well-trained rows were turned (a linear map). Its length: the median
    of the well-trained rows of the same class (piece of a word or not, one or two letters, longer).
    """
    unit = lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    table, x = np.asarray(table, np.float64), unit(np.asarray(init, np.float64))
    good, length = df >= seen, np.linalg.norm(table, axis=1)
    a, b = x[good], unit(table[good])
    m = np.linalg.solve(a.T @ a + ridge * np.eye(a.shape[1]), a.T @ b)
    guess = unit((1 - turn) * x + turn * unit(x @ m))
    sort = np.array([2 * t.startswith("##") + (len(t.removeprefix("##")) <= 2) for t in vocab])
    for c in range(4):
        guess[sort == c] *= np.median(length[good & (sort == c)])
    n = df[:, None].astype(np.float64)
    return torch.from_numpy(((n * table + k * guess) / (n + k)).astype(np.float32))


def train(data, tokens, o, log=print):
    torch.manual_seed(o.seed)
    np.random.seed(o.seed)
    proj, target = data.project(o.dim)
    y = torch.from_numpy(target)
    init = init_table(data, tokens, proj)
    table = init.clone()
    opt = RowAdam(table, o.lr)
    weight = torch.from_numpy(np.where(np.isin(data.kind, ("question", "error")), o.question_weight, 1.0).astype(np.float32))
    steps = o.epochs * (len(data.train) // o.batch)
    pairs, at, order, started = data.pairs, 0, np.zeros(0, int), time.time()
    perm, pat = np.random.permutation(len(pairs)), 0
    if o.watch:
        log(f"start: {brief(evaluate(data, table, target, o.damping))}")
    for step in range(steps):
        if at + o.batch > len(order):
            order, at = np.random.permutation(data.train), 0
        which = order[at:at + o.batch]
        at += o.batch
        both = which
        if o.contrast:
            if pat + o.pairs > len(perm):
                perm, pat = np.random.permutation(len(pairs)), 0
            p = pairs[perm[pat:pat + o.pairs]]
            pat += o.pairs
            both = np.concatenate([which, p[:, 0], p[:, 1]])
        ids, counts, off = data.bags.rows(both)
        w = damp(o.damping, counts)
        if o.drop:
            w = w * (np.random.random(len(w)) >= o.drop)
        rows, inv = np.unique(ids, return_inverse=True)
        rows = torch.from_numpy(rows)
        sub = table[rows].requires_grad_()
        s = F.normalize(F.embedding_bag(torch.from_numpy(inv.astype(np.int64)), sub, torch.from_numpy(off), mode="sum",
                                        per_sample_weights=torch.from_numpy(w.astype(np.float32))), dim=-1, eps=1e-6)
        yb = y[both]
        loss = ((1 - (s * yb).sum(1))[:len(which)] * weight[which]).mean()
        if o.contrast:
            n, k = len(which), len(p)
            q, d, tq, td = s[n:n + k], s[n + k:], yb[n:n + k], yb[n + k:]
            loss = loss + o.pair_cos * ((1 - (q * tq).sum(1)).mean() + (1 - (d * td).sum(1)).mean())
            gold = torch.arange(k)
            same = torch.from_numpy((p[:, 1][:, None] == p[:, 1][None]) & ~np.eye(k, dtype=bool))
            soft = F.softmax(((tq @ td.T) / o.tau).masked_fill(same, -1e4), 1)
            for docs in (d, td):
                z = ((q @ docs.T) / o.tau).masked_fill(same, -1e4)
                lp = F.log_softmax(z, 1)
                loss = loss - o.contrast / 2 * ((1 - o.soft) * lp[gold, gold].mean() + o.soft * (soft * lp).sum(1).mean())
        loss.backward()
        lr = o.lr * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6
        with torch.no_grad():
            opt.step(rows, sub.grad, lr)
        if o.watch and (step + 1) % max(1, steps // 5) == 0:
            log(f"{step + 1}/{steps} {time.time() - started:.0f}s {brief(evaluate(data, table, target, o.damping))}")
    best = None
    for k in o.smooth:
        t = smooth(table, init, data.df, data.vocab, k) if k else table
        r = evaluate(data, t, target, o.damping)
        log(f"smooth {k:g}: {brief(r)}")
        score = r["cos"] + 0.5 * (r["ss"] + r["st"])
        if best is None or score > best[0]:
            best = (score, k, t, r)
    return {"table": best[2].numpy(), "smooth": best[1], "proj": proj, "report": best[3], "init": init.numpy()}


def options():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--model", required=True)
    a.add_argument("--work", required=True)
    a.add_argument("--out", default="trained.npz", help="file in the work folder")
    a.add_argument("--dim", type=int, default=256)
    a.add_argument("--damping", choices=list(DAMPING), default="sqrt")
    a.add_argument("--epochs", type=int, default=15)
    a.add_argument("--batch", type=int, default=512)
    a.add_argument("--pairs", type=int, default=256)
    a.add_argument("--lr", type=float, default=0.005)
    a.add_argument("--drop", type=float, default=0.0)
    a.add_argument("--contrast", type=float, default=0.0)
    a.add_argument("--pair-cos", type=float, default=0.0, dest="pair_cos")
    a.add_argument("--soft", type=float, default=0.0)
    a.add_argument("--tau", type=float, default=0.05)
    a.add_argument("--question-weight", type=float, default=1.0, dest="question_weight")
    a.add_argument("--smooth", type=float, nargs="*", default=[0.0, 1.0, 3.0, 8.0],
                   help="candidates; the held-out texts choose")
    a.add_argument("--watch", action="store_true", help="measure during the training, too")
    a.add_argument("--seed", type=int, default=7)
    a.add_argument("--threads", type=int, default=2)
    return a


def main():
    o = options().parse_args()
    torch.set_num_threads(o.threads)
    work = pathlib.Path(o.work)
    data = Data(work, o.model)
    tokens = token_vectors(o.model, work)
    print(len(data.train), "training texts,", int(data.held.sum()), "held out,", len(data.pairs), "pairs,", len(data.pool), "documents in the held-out pool", flush=True)
    r = train(data, tokens, o, log=lambda s: print(s, flush=True))
    proj = r["proj"] if r["proj"] is not None else np.zeros((0, DIM), np.float32)
    np.savez(work / o.out, table=r["table"], mean=data.mean.astype(np.float32), projection=proj, df=data.df,
             info=json.dumps({"dim": o.dim, "damping": o.damping, "seed": o.seed, "options": vars(o), "heldout": r["report"],
                              "smooth": r["smooth"], "texts": len(data.train), "pairs": len(data.pairs)}))
    print(f"-> {o.out}, smooth {r['smooth']}: {brief(r['report'])}")


if __name__ == "__main__":
    main()
