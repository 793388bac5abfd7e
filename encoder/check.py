"""Check the artifact: its form, the reference fixtures, held-out texts, and (with --sets) retrieval on labelled sets.

The sets are folders of docs.jsonl {id, title, subtitle, facts, body, tags, project} and queries.jsonl {qid, text,
relevant, project}. They are for looking, not for tuning.
"""
import argparse
import collections
import gzip
import hashlib
import json
import math
import pathlib
import re
import sqlite3

import numpy as np

from static import Static
from teach import Teacher, load_cache, lookup

STOP = set("""a about all also am an and any are as at be because been before being between both but by can could did do does doing don during each few for from
further had has have having he her here hers him his how i if in into is it its itself just me more most my no nor not now of off on once only or other our out
over own same she should so some such than that the their them then there these they this those through to too under until up very was we were what when where
which while who whom why will with would you your""".split())


def rest(d):
    return "\n".join(x for x in [d.get("subtitle") or "", *(d.get("facts") or []), d.get("body") or "", " ".join(d.get("tags") or [])] if x)


def whole(d):
    return d["title"] + "\n" + rest(d)


def keywords(docs, queries):
    db = sqlite3.connect(":memory:")
    db.execute("create virtual table t using fts5(title, facts, body, tags, tokenize='porter unicode61')")
    db.executemany("insert into t values (?,?,?,?)", [(d["title"], "\n".join(d.get("facts") or []), (d.get("subtitle") or "") + "\n" + d["body"], " ".join(d["tags"])) for d in docs])
    out = []
    for q in queries:
        words = [w for w in re.findall(r"\w+", q["text"].lower()) if w not in STOP]
        rows = db.execute("select rowid from t where t match ? order by bm25(t, 4, 2, 1, 2)", (" OR ".join(f'"{w}"' for w in words),)).fetchall() if words else []
        out.append([r[0] - 1 for r in rows])
    return out


def ndcg(ranked, relevant):
    hits = [i for i, d in enumerate(ranked[:10]) if d in relevant]
    return sum(1 / math.log2(i + 2) for i in hits) / sum(1 / math.log2(i + 2) for i in range(min(10, len(relevant))))


def rankings(sim, docs, queries):
    """By similarity, inside the query's project."""
    out = []
    for q, s in zip(queries, sim):
        ok = [i for i in np.argsort(-s, kind="stable") if not q.get("project") or docs[i]["project"] == q["project"]]
        out.append([i for i in ok if s[i] > -1])
    return out


def fuse(a, b, k=10):
    out = []
    for x, y in zip(a, b):
        score = collections.Counter()
        for r in (x[:100], y[:100]):
            for i, d in enumerate(r):
                score[d] += 1 / (k + i + 1)
        out.append([d for d, _ in score.most_common()])
    return out


def measure(docs, queries, ranked):
    at = {d["id"]: i for i, d in enumerate(docs)}
    per = [ndcg(r, {at[x] for x in q["relevant"]}) for q, r in zip(queries, ranked)]
    para = [p for p, q in zip(per, queries) if q.get("category") == "paraphrase"]
    return float(np.mean(per)), float(np.mean(para)) if para else float("nan")


def load_set(folder):
    load = lambda n: [json.loads(x) for x in open(pathlib.Path(folder) / n, encoding="utf-8")]
    return load("docs.jsonl"), [q for q in load("queries.jsonl") if q["relevant"]]


def scoped(ranked, docs, queries):
    return [[i for i in r if not q.get("project") or docs[i]["project"] == q["project"]] for r, q in zip(ranked, queries)]


def sets(static, folders, vectors, title_weights):
    for folder in folders:
        docs, queries = load_set(folder)
        kw = scoped(keywords(docs, queries), docs, queries)
        print(f"\n{pathlib.Path(folder).name}: {len(docs)} documents, {len(queries)} queries; nDCG@10 all / paraphrase")
        show = lambda name, r: print(f"  {name:44}" + " / ".join(f"{x:.3f}" for x in measure(docs, queries, r)))
        show("keywords", kw)
        q = static.encode([x["text"] for x in queries])
        forms = {"one text": static.encode([whole(d) for d in docs])}
        a, b = static.encode([d["title"] for d in docs]), static.encode([rest(d) for d in docs])
        for w in title_weights:
            v = w * a + b
            forms[f"{w} title + rest"] = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)
        for n in (128, 256, 512):
            forms[f"one text, first {n} tokens"] = static.encode([whole(d) for d in docs], limit=n)
        for name, d in forms.items():
            r = rankings(q @ d.T, docs, queries)
            show("static / static, " + name, r)
            show("  fused", fuse(kw, r))
        if vectors:
            tq, td = vectors([x["text"] for x in queries]), vectors([whole(d) for d in docs])
            for name, x, y in (("teacher / teacher", tq, td), ("teacher / teacher, projected", static.project(tq), static.project(td)), ("static / teacher", q, static.project(td))):
                r = rankings(x @ y.T, docs, queries)
                show(name, r)
                show("  fused", fuse(kw, r))


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--artifact", default=str(pathlib.Path(__file__).parent / "static.safetensors"))
    a.add_argument("--model", help="teacher folder, to check its fixture and to encode the sets' documents")
    a.add_argument("--work", help="work folder: held-out texts; teacher vectors of the sets are kept in eval/ there")
    a.add_argument("--sets", nargs="*", default=[])
    a.add_argument("--title-weights", nargs="*", type=float, default=[0.3, 1.0])
    o = a.parse_args()
    s = Static(o.artifact)
    data = pathlib.Path(o.artifact).read_bytes()
    n, dim = s.rows.shape
    assert len(s.scales) == len(s.kept) == n and len(s.all_vocab) == 30522 and s.mean.shape == (384,) and np.all(np.diff(s.kept.astype(int)) > 0)
    assert s.projection is None or s.projection.shape == (dim, 384)
    print(f"{n} x {dim}, {len(data)} bytes, gzip {len(gzip.compress(data, 9))}, sha256 {hashlib.sha256(data).hexdigest()}")
    ref = pathlib.Path(o.artifact).parent / "reference"
    if ref.exists():
        w = json.loads((ref / "wordpiece.json").read_text())
        assert all(s.ids([x["text"]])[0] == x["ids"] for x in w if not x.get("special")), "wordpiece.json"
        v = json.loads((ref / "vectors.json").read_text())
        assert np.allclose(s.encode([x["text"] for x in v]), np.array([x["vector"] for x in v]), atol=2e-6), "vectors.json"
        print(len(w), "tokenizations and", len(v), "vectors agree with the fixtures")
    teacher = Teacher(o.model) if o.model else None
    if teacher and ref.exists():
        t = json.loads((ref / "teacher.json").read_text())
        assert np.allclose(teacher.encode([x["text"] for x in t]), np.array([x["vector"] for x in t]), atol=1e-5), "teacher.json"
    if o.work:
        work = pathlib.Path(o.work)
        texts = {x["text"]: x["kind"] for x in map(json.loads, open(work / "texts.jsonl")) if x["split"] == "heldout"}
        have, vec = lookup(load_cache(work / "teacher"), list(texts))
        texts = [(t, k) for (t, k), h in zip(texts.items(), have) if h]
        cos = (s.encode([t for t, _ in texts]) * s.project(vec)).sum(1)
        kinds = np.array([k for _, k in texts])
        print("held-out cosine:", {k: round(float(cos[kinds == k].mean()), 4) for k in sorted(set(kinds.tolist()))}, "all", round(float(cos.mean()), 4))
    if o.sets:
        vectors = None
        if teacher and o.work:
            folder = pathlib.Path(o.work) / "eval"
            folder.mkdir(exist_ok=True)

            def vectors(texts):
                f = folder / (hashlib.sha1("\0".join(texts).encode()).hexdigest()[:16] + ".npy")
                if not f.exists():
                    np.save(f, teacher.encode(texts))
                return np.load(f)
        sets(s, o.sets, vectors, o.title_weights)


if __name__ == "__main__":
    main()
