"""Training text: documentation, manual pages, package descriptions, comments and error messages of installed software.

Every source is brought to sections (heading, paragraphs); sections become short texts (headings, questions, sentences,
error messages), paragraphs, and texts of the size of a memory (title and several facts). Writes texts.jsonl
{text, kind, source, split} in the order in which the teacher should take them, and pairs.jsonl {query, doc, kind, split}.
Texts that share eight consecutive words, or a whole title, with the evaluation sets are left out.
"""
import argparse
import ast
import collections
import gzip
import hashlib
import html.parser
import json
import pathlib
import random
import re

WORD = re.compile(r"\w+")
SPACE = re.compile(r"\s+")


def clean(s):
    return SPACE.sub(" ", s).strip()


def prose(s, low=3, high=400):
    """Is this text worth a vector: enough words, mostly letters, English by its stop words when it is long?"""
    words = s.split()
    if not low <= len(words) <= high or len(s) > 12 * len(words) + 40:
        return False
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in s)
    if letters < 0.72 * len(s):
        return False
    return len(words) < 15 or any(w.lower() in ("the", "a", "to", "is", "of", "and") for w in words)


# ---- readers: each yields (heading, [paragraphs])

class Page(html.parser.HTMLParser):
    SKIP = {"script", "style", "nav", "footer", "head", "svg", "button", "form", "select"}
    BLOCK = {"p", "li", "dd", "dt", "div", "td", "th", "tr", "ul", "ol", "dl", "table", "section", "blockquote", "body"}
    HEAD = {"h1", "h2", "h3", "h4", "h5"}

    def __init__(self):
        super().__init__()
        self.skip, self.buf, self.out, self.head, self.paras, self.pre = 0, [], [], "", [], 0

    def flush(self):
        s = clean("".join(self.buf))
        self.buf = []
        return s

    def para(self):
        s = self.flush()
        if s:
            self.paras.append(s)

    def section(self):
        self.para()
        if self.paras:
            self.out.append((self.head, self.paras))
        self.paras = []

    def handle_starttag(self, tag, attrs):
        if tag in self.SKIP:
            self.skip += 1
        elif tag in self.HEAD:
            self.section()
        elif tag == "pre":
            self.para()
            self.pre += 1
        elif tag in self.BLOCK:
            self.para()

    def handle_endtag(self, tag):
        if tag in self.SKIP:
            self.skip = max(0, self.skip - 1)
        elif tag in self.HEAD:
            self.head = re.sub(r"^[\d.]+\s+|[¶#§]+$", "", self.flush()).strip()
        elif tag == "pre":
            if len("".join(self.buf)) > 200:
                self.buf = []
            self.para()
            self.pre = max(0, self.pre - 1)
        elif tag in self.BLOCK:
            self.para()

    def handle_data(self, data):
        if not self.skip:
            self.buf.append(data)


def read_html(text):
    p = Page()
    try:
        p.feed(text)
        p.section()
    except AssertionError:
        pass
    return p.out


def read_markdown(text):
    head, paras, buf, fence = "", [], [], None

    def para():
        s = clean(" ".join(buf))
        buf.clear()
        s = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|!?\[([^\]]*)\]\[[^\]]*\]", lambda m: m[1] or m[2] or "", s)
        s = re.sub(r"\*\*|__|<[^>]{1,80}>|^[-*+>]\s+|^\d+\.\s+", "", s).strip()
        if s:
            paras.append(s)

    for line in text.split("\n"):
        t = line.strip()
        if t.startswith(("```", "~~~")):
            if fence is None:
                para()
                fence = []
            else:
                if 0 < len(fence) <= 3:
                    paras.append(clean(" ".join(fence)))
                fence = None
            continue
        if fence is not None:
            fence.append(t)
        elif re.match(r"#{1,5}\s", t):
            para()
            if paras:
                yield head, paras
            head, paras = t.lstrip("#").strip(), []
        elif re.match(r"(={4,}|-{4,}|~{4,})$", t) and len(buf) == 1:  # underlined heading
            title = buf.pop()
            if paras:
                yield head, paras
            head, paras = title, []
        elif not t:
            para()
        else:
            if re.match(r"[-*+]\s|\d+\.\s", t):
                para()
            buf.append(t)
    para()
    if paras:
        yield head, paras


def read_man(text):
    name, head, paras, buf = "", "", [], []

    def para():
        s = clean(" ".join(buf))
        buf.clear()
        if s:
            paras.append(s)

    for line in text.split("\n"):
        line = re.sub(r"\\f(\(..|\[[^\]]*\]|.)|\\[&/,^|%:]|\\s[-+]?\d", "", line).replace("\\-", "-").replace("\\(aq", "'")
        line = re.sub(r"\\\((lq|rq|dq)|\\\*\(..|\\\[[^\]]*\]", '"', line).replace("\\e", "\\").replace("\\ ", " ")
        m = re.match(r"[.'](\w+)\s*(.*)", line)
        if line.startswith(('.\\"', "'\\\"")):
            continue
        if not m:
            if line.strip() and not line.startswith("."):
                buf.append(line)
            elif not line.strip():
                para()
            continue
        macro, rest = m[1], m[2].replace('"', "")
        if macro in ("SH", "Sh", "SS", "Ss"):
            para()
            if paras:
                if head.lower() == "name":
                    name = paras[0]
                    tool, _, what = name.partition(" - ")
                    if what:
                        yield tool, [what]
                else:
                    yield f"{name.split(' - ')[0].split(',')[0]} {head.lower()}".strip(), paras
            head, paras = rest, []
        elif macro in ("PP", "P", "LP", "Pp", "TP", "IP", "It", "sp"):
            para()
            if macro in ("IP", "It"):
                buf.append(rest)
        elif macro in ("B", "I", "BR", "IR", "RB", "RI", "BI", "IB", "Nm", "Fl", "Ar", "Xr", "Nd", "Dv", "Er", "Fn", "Pa"):
            buf.append(rest.replace(" ", "") if len(macro) == 2 and macro.isupper() else rest)
    para()
    if paras and head:
        yield f"{name.split(' - ')[0].split(',')[0]} {head.lower()}".strip(), paras


ERR_RUST = re.compile(r'(?:bail!|anyhow!|panic!|expect|error!|warn!|ensure!|unreachable!|#\[error|Err|new|msg|context)\s*\(\s*"((?:[^"\\]|\\.){18,220})"')
ERR_PY = re.compile(r'(?:Error|Exception|Warning|warn|fail|exit|error|abort)\(\s*[rf]?(["\'])((?:(?!\1)[^\\\n]|\\.){18,220})\1')
ERR_JS = re.compile(r'(?:Error|error|warn|assert|fail)\(\s*["\'`]((?:[^"\'`\\\n]|\\.){18,220})["\'`]')


def read_rust(text):
    """Doc comments as sections; (None, [..]) for line comments and error messages."""
    loose = [clean(m[1].replace("\\\n", " ").replace('\\"', '"')) for m in ERR_RUST.finditer(text)]
    if loose:
        yield "!error", loose
    block, mark = [], None
    for line in text.split("\n") + [""]:
        t = line.strip()
        m = re.match(r"(///|//!|//)(?!/)\s?(.*)", t)
        kind = m and m[1]
        if block and kind != mark:
            if mark == "//":
                s = clean(" ".join(block))
                if len(s.split()) >= 7 and "copyright" not in s.lower() and "licen" not in s.lower():
                    yield "", [s]
            else:
                item = re.search(r"\b(?:fn|struct|enum|trait|mod|const|type|macro)\s+(\w+)", t)
                for head, paras in read_markdown("\n".join(block)):
                    yield head or ("@" + item[1] if item else ""), paras
            block = []
        mark = kind
        if kind:
            block.append(m[2])


def read_python(text):
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    errors = [clean(m[2]) for m in ERR_PY.finditer(text)]
    if errors:
        yield "!error", errors
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Module)):
            doc = ast.get_docstring(node)
            if doc and "copyright" not in doc.lower():
                paras = [clean(p) for p in doc.split("\n\n") if ">>>" not in p]
                if paras:
                    yield "@" + getattr(node, "name", ""), paras


def read_js(text):
    errors = [clean(m[1]) for m in ERR_JS.finditer(text)]
    if errors:
        yield "!error", errors
    for m in re.finditer(r"/\*\*(.{30,1500}?)\*/|((?:^[ \t]*//[^\n]*\n){2,8})", text, re.S | re.M):
        s = clean(re.sub(r"^\s*(\*|//)\s?", "", (m[1] or m[2]), flags=re.M).split("@")[0])
        if len(s.split()) >= 7 and "licen" not in s.lower() and "copyright" not in s.lower():
            yield "", [s]


def read_packages(path):
    """A Translation-en file of a Debian archive: one short and one long description a package."""
    for stanza in open(path, encoding="utf-8").read().split("\n\n"):
        m = re.search(r"^Package: (\S+)", stanza, re.M)
        d = re.search(r"^Description-en: (.*(?:\n .*)*)", stanza, re.M)
        if m and d:
            lines = d[1].split("\n")
            paras = [clean(p) for p in re.sub(r"^ ", "", "\n".join(lines[1:]), flags=re.M).split("\n.\n")]
            yield m[1], lines[0], [p for p in paras if p]


def tree(root, patterns, cap, rng, skip=()):
    files = sorted(f for p in patterns for f in pathlib.Path(root).rglob(p) if f.is_file() and not f.is_symlink())
    files = [f for f in files if not any(s in str(f).lower() for s in skip) and f.stat().st_size < 600_000]
    rng.shuffle(files)
    for f in files[:cap]:
        data = gzip.open(f).read() if f.suffix == ".gz" else f.read_bytes()
        yield f, data.decode("utf-8", "replace").replace("\r\n", "\n")


def sections(o, rng):
    """(source, heading, paragraphs) of everything."""
    skip = ("clippy", "license", "copying", "genindex", "/search", "/til/", "compound-engineering", "/tests/data")
    if o.packages:
        for name, short, paras in read_packages(o.packages):
            if not re.search(r"-(dbg|dbgsym|data|l10n|locale|lang)|^(fonts?|task|texlive|libghc|librust|language|hunspell|aspell)-", name):
                yield "package", name + "\t" + short, paras
    for root in o.rust:
        for f, s in tree(root, ("*.rs",), 9000, rng, skip):
            for head, paras in read_rust(s):
                yield "rust", head, paras
        for f, s in tree(root, ("*.md",), 2500, rng, skip):
            for head, paras in read_markdown(s):
                yield "rust-readme", head, paras
    for root in o.docs:
        for folder in sorted(pathlib.Path(root).iterdir()):
            for f, s in tree(folder, ("*.html", "*.htm"), 700, rng, skip):
                for head, paras in read_html(s):
                    yield "html", head, paras
            for f, s in tree(folder, ("*.md", "*.rst", "*.rst.gz", "*.txt", "*.txt.gz", "*.md.gz", "NEWS*.gz", "README*"), 200, rng, skip + ("robots", ".html", "_sources")):
                for head, paras in read_markdown(s):
                    yield "text", head, paras
            for f, s in tree(folder, tuple(f"*.{n}*.gz" for n in "1234578"), 500, rng, skip + ("/man/de", "/man/fr", "/man/es", "/man/ja", "/man/pt", "/man/zh", "/man/ru", "/man/it", "/man/pl")):
                if "/man/man" in str(f):
                    for head, paras in read_man(s):
                        yield "man", head, paras
    for root in o.python:
        for f, s in tree(root, ("*.py",), 6000, rng, skip + ("/tests/", "lib2to3")):
            for head, paras in read_python(s):
                yield "python", head, paras
    for root in o.js:
        for f, s in tree(root, ("*.js", "*.ts", "*.mjs"), 5000, rng, skip + (".min.",)):
            for head, paras in read_js(s):
                yield "js", head, paras
        for f, s in tree(root, ("*.md",), 2500, rng, skip):
            for head, paras in read_markdown(s):
                yield "js-readme", head, paras


# ---- from sections to texts

STOP = set("the a an of to in is are and or for with on by be it this that as at from if not can will you your when which its was has have".split())
BASE = {"returns": "get", "creates": "create", "gets": "get", "sets": "set", "checks": "check if", "converts": "convert", "adds": "add", "removes": "remove",
        "reads": "read", "writes": "write", "parses": "parse", "builds": "build", "computes": "compute", "calculates": "calculate", "opens": "open",
        "closes": "close", "sends": "send", "deletes": "delete", "updates": "update", "tries": "try", "enables": "enable", "disables": "disable",
        "runs": "run", "loads": "load", "finds": "find", "waits": "wait for", "allows": "allow", "specifies": "specify", "makes": "make"}


def question(s, rng):
    """A question or a symptom as a person might type it, from a heading, a first sentence or an error message."""
    s = s.rstrip(".:!").strip()
    low = s if s[1:2].isupper() else s[:1].lower() + s[1:]
    first, _, rest = low.partition(" ")
    if not rest:
        return rng.choice([f"what is {s}", f"how does {s} work", f"{s} not working"])
    if first in BASE:
        rest = re.sub(r"^(a|an|the) ", "", rest) if rng.random() < 0.3 else rest
        return rng.choice([f"how do I {BASE[first]} {rest}?", f"how to {BASE[first]} {rest}", f"{BASE[first]} {rest}", f"is there a way to {BASE[first]} {rest}?"])
    if first.endswith("ing") and len(first) > 5:
        return rng.choice([f"how does {low} work?", f"{low} fails", f"best way of {low}", f"problem with {low}", f"what did we decide about {low}?", f"notes on {low}"])
    if re.search(r"\b(fail|error|invalid|cannot|can't|unable|not |missing|unexpected|denied|refused|timed? ?out|exceed)", low):
        return rng.choice([f"why do I get \"{s}\"?", f"what causes: {s}", f"{low} - how to fix", f"error: {s}", f"fix for {low}", f"{low} after upgrade", f"what does {s} mean?"])
    return rng.choice([f"what is {low}?", f"how does {low} work?", f"why do we use {low}?", f"where is {low} configured?", f"{low} problem", f"how to use {low}", f"explain {low}", f"{low}"])


def keywords(s, rng):
    """A vague search: some content words of a text, in order."""
    ws = [w.strip(".,;:()[]\"'`") for w in s.split()]
    ws = list(dict.fromkeys(w for w in ws if len(w) > 2 and w.lower() not in STOP and len(w) < 25))
    if len(ws) < 5:
        return None
    n = rng.randint(3, min(7, len(ws)))
    start = rng.randrange(max(1, len(ws) - 3 * n))
    window = ws[start:start + 3 * n]
    keep = sorted(rng.sample(range(len(window)), min(n, len(window))))
    s = " ".join(window[i] for i in keep)
    return s.lower() if rng.random() < 0.6 else s


def sentences(p):
    return [s.strip() for s in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"])", p) if s.strip()]


def take(paras, words):
    """Paragraphs and sentences up to about so many words."""
    out, n = [], 0
    for p in paras:
        w = p.split()
        if n + len(w) > words:
            for s in sentences(p):
                k = len(s.split())
                if n + k > words and out:
                    return out
                out.append(s)
                n += k
            return out
        out.append(p)
        n += len(w)
    return out


def unit(source, head, paras, rng):
    """([(kind, text)], [(query, doc, kind)]) of one section."""
    texts, pairs = [], []
    if head == "!error":
        for e in rng.sample(paras, min(3, len(paras))):
            e = clean(re.sub(r"\\[nt]", " ", e))
            if not prose(e, 3, 40):
                continue
            texts.append(("error", e))
            if rng.random() < 0.5:
                texts.append(("question", question(e, rng)))
        return texts, pairs
    paras = [p for p in paras if p]
    name = ""
    if head.startswith("@"):
        name, head = head[1:], ""
    if "\t" in head:
        name, head = head.split("\t")
    if not head and paras:
        ss = sentences(paras[0])
        if len(ss) + len(paras) > 2:
            head, paras = ss[0], ([" ".join(ss[1:])] if ss[1:] else []) + paras[1:]
    head = clean(head.replace("`", "") if rng.random() < 0.5 else head)[:200]
    good = [p for p in paras if prose(p, 3, 400)]
    if not good:
        if prose(head, 4, 40):
            texts.append(("short", head))
        return texts, pairs
    size = rng.choice((25, 40, 60, 90, 130, 170))
    start = 0 if rng.random() < 0.7 else rng.randrange(len(good))
    facts = take(good[start:], size)
    body = (" " if rng.random() < 0.5 else "\n" if rng.random() < 0.7 else "\n- ").join(facts)
    words = len(body.split())
    titled = len(head.split()) >= 2 and prose(head, 2, 30)
    if words < 6:
        return texts, pairs
    title = head if not name or rng.random() < 0.5 else f"{name}: {head}" if head else name
    r = rng.random()
    if words >= 30 and titled and r < 0.45:  # a memory: title, facts
        doc = f"{title}\n{body}"
        if rng.random() < 0.3:
            doc += "\n" + ", ".join(sorted({w.lower() for w in rng.sample(WORD.findall(body), min(3, words)) if len(w) > 3}))
        with_title = True
    else:
        doc, with_title = body, False
    kind = "long" if words >= 60 else "medium" if words >= 22 else "short"
    texts.append((kind, doc))
    if titled and not with_title:
        q = title
        texts.append(("short", q))
        pairs.append((q, doc, "title"))
        if rng.random() < 0.45:
            q = question(head, rng)
            texts.append(("question", q))
            pairs.append((q, doc, "question"))
    elif titled:
        q = question(head, rng)
        texts.append(("question", q))
        pairs.append((q, doc, "question"))
    if words >= 20 and rng.random() < 0.45:
        q = keywords(body, rng)
        if q:
            texts.append(("question", q))
            pairs.append((q, doc, "keywords"))
    if name and source == "package" and rng.random() < 0.2:
        texts.append(("short", name))
        pairs.append((name, doc, "title"))
    for p in good:  # loose sentences, of the rest of the section
        for s in sentences(p):
            if prose(s, 6, 40) and s not in body and rng.random() < 0.25:
                texts.append(("short", s))
    return texts[:8], pairs


def shingles(s, n=8):
    w = [x.lower() for x in WORD.findall(s)]
    return {" ".join(w[i:i + n]) for i in range(len(w) - n + 1)}


def forbidden(folder):
    grams, whole = set(), set()
    for f in sorted(pathlib.Path(folder).rglob("*.jsonl")):
        for line in open(f, encoding="utf-8"):
            d = json.loads(line)
            for field in ("title", "subtitle", "body", "text"):
                if d.get(field):
                    grams |= shingles(d[field])
            for x in d.get("facts") or []:
                grams |= shingles(x)
            for field in ("title", "text"):
                if len(WORD.findall(d.get(field) or "")) >= 3:
                    whole.add(" ".join(WORD.findall(d[field].lower())))
    return grams, whole


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--work", required=True, help="where texts.jsonl and pairs.jsonl go")
    a.add_argument("--packages", help="a decompressed Translation-en file")
    a.add_argument("--rust", nargs="*", default=[], help="folders of crates")
    a.add_argument("--docs", nargs="*", default=[], help="folders of unpacked documentation packages")
    a.add_argument("--python", nargs="*", default=[])
    a.add_argument("--js", nargs="*", default=[])
    a.add_argument("--avoid", help="folder of evaluation sets")
    a.add_argument("--caps", default="package=6000,rust=14000,rust-readme=5000,html=26000,text=7000,man=9000,python=9000,js=4000,js-readme=5000",
                   help="sections a source")
    a.add_argument("--heldout", type=float, default=0.03)
    a.add_argument("--seed", type=int, default=7)
    o = a.parse_args()
    caps = {k: int(v) for k, v in (x.split("=") for x in o.caps.split(","))}
    grams, whole = forbidden(o.avoid) if o.avoid else (set(), set())
    pools = collections.defaultdict(dict)
    for source, head, paras in sections(o, random.Random(o.seed)):
        k = hashlib.sha1(clean(head + " ".join(paras))[:200].lower().encode()).hexdigest()
        pools[source].setdefault(k, (head, paras))
    print({k: len(v) for k, v in pools.items()}, "sections found")
    units = []
    for source, pool in sorted(pools.items()):
        chosen = sorted(pool)
        random.Random(o.seed).shuffle(chosen)
        units += [(k, source, *pool[k]) for k in chosen[:caps.get(source, 5000)]]
    units.sort(key=lambda u: u[0])  # by hash: any prefix is a fair sample
    seen, texts, pairs, dropped = {}, [], [], 0
    for k, source, head, paras in units:
        rng = random.Random(k + str(o.seed))
        split = "heldout" if int(k[-6:], 16) / 16 ** 6 < o.heldout else "train"
        ts, ps = unit(source, head, paras, rng)
        bad = set()
        for kind, t in ts:
            norm = " ".join(WORD.findall(t.lower()))
            if norm in whole or shingles(t) & grams:
                bad.add(t)
                dropped += 1
                continue
            if seen.setdefault(norm, split) != split:
                bad.add(t)
            elif (norm, t) not in seen:
                seen[(norm, t)] = split
                texts.append({"text": t, "kind": kind, "source": source, "split": split})
        pairs += [{"query": q, "doc": d, "kind": n, "split": split} for q, d, n in ps if not {q, d} & bad]
    work = pathlib.Path(o.work)
    texts.sort(key=lambda t: t["split"] != "heldout")  # held-out first, stable
    for name, rows in (("texts", texts), ("pairs", pairs)):
        tmp = work / f".{name}.tmp"
        with open(tmp, "w", encoding="utf-8") as f:
            for r in rows:
                f.write(json.dumps(r, ensure_ascii=False) + "\n")
        tmp.rename(work / f"{name}.jsonl")
    count = lambda rows, *fields: dict(sorted(collections.Counter("/".join(r[f] for f in fields) for r in rows).items()))
    words = sum(len(t["text"].split()) for t in texts)
    counts = {"texts": len(texts), "words": words, "pairs": len(pairs), "dropped_for_overlap": dropped, "source": count(texts, "source"),
              "kind": count(texts, "kind"), "split": count(texts, "split"), "pair_kind": count(pairs, "kind", "split")}
    (work / "counts.json").write_text(json.dumps(counts, indent=1))
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
