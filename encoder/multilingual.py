"""The multilingual table: words and pieces of words in other languages, with vectors in the English table's space.

`words` counts and chooses the pieces; `read` turns the pairs into rows and the English vectors of the originals; `train` makes the table; `export` writes the artifact and the fixtures.
"""
import argparse
import collections
import hashlib
import json
import math
import pathlib
import re
import time
import unicodedata

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from export import pack, write
from static import CYRILLIC, FREE_CHARS, HANGUL, IDEOGRAPHS, KATAKANA, LATIN, PIECE_CHARS, RUN, Multilingual, Static, characters, longest_pieces, piece_hash

# How many whole words of each language are candidates. Chinese has almost none: its characters and pairs are counted apart.
WORDS = {"de": 10000, "fr": 8000, "es": 8000, "pt": 8000, "it": 8000, "pl": 9500, "ru": 11000, "ko": 9500, "vi": 4500, "ja": 4500, "zh": 500}
CHARACTERS, PAIRS = 5000, 21000
# How many pieces of rarer words, by script.
PIECES = {LATIN: 11000, CYRILLIC: 4500, HANGUL: 4500, KATAKANA: 1200}

IN_LATIN_LETTERS = "de", "fr", "es", "pt", "it", "pl", "vi"
JAPANESE_WEIGHT = 1.6
TEXT_TOKENS, ENGLISH_TOKENS = 64, 256


def runs(text):
    """The runs of letters of a text in lower case. What the program reads has no full-width letters any more."""
    return RUN.findall(unicodedata.normalize("NFKC", text).lower())


def is_word(run):
    return re.match(f"[{LATIN}{CYRILLIC}{HANGUL}{KATAKANA}]", run) and not re.search("[0-9]", run) and not (len(run) == 1 and run.isascii())


class Reader:
    """Rows of texts: those of the multilingual pieces first, then the English ones."""

    def __init__(self, pieces, static):
        self.rows, self.static, self.cache = {piece: row for row, piece in enumerate(pieces)}, static, {}
        self.first_english = len(pieces)

    def english(self, run):
        rows = self.static.row_of[np.array(self.static.ids([run])[0], np.int64)]
        return [self.first_english + int(row) for row in rows if row >= 0]

    def run(self, run):
        """The rows of a run in a text that is not English."""
        if re.match(f"[{IDEOGRAPHS}]", run):
            return characters(run, self.rows.get)
        if not is_word(run):
            return self.english(run)
        rows, has_own = longest_pieces(run, self.rows.get)
        if rows and (has_own or not run.isascii()):
            return rows
        english = self.english(run)
        return english if len(english) == 1 and run in self.static.vocab or not rows else rows

    def read(self, text):
        out = []
        for run in runs(text):
            rows = self.cache.get(run)
            if rows is None:
                rows = self.run(run)
                if len(run) < 16:
                    self.cache[run] = rows
            out += rows
        return out

    def bags(self, texts, limit):
        """Distinct rows of each text, the square roots of their counts, and where each text begins."""
        ids, counts, starts = [], [], [0]
        for text in texts:
            u, c = np.unique(np.array(self.read(text)[:limit], np.int32), return_counts=True)
            ids.append(u)
            counts.append(c)
            starts.append(starts[-1] + len(u))
        return np.concatenate(ids), np.sqrt(np.concatenate(counts)).astype(np.float32), np.array(starts)


def encode(table, attention, ids, roots, starts):
    """Vectors of bags, by the rule of the English table."""
    counts = torch.from_numpy(np.diff(starts))
    begin = torch.from_numpy(starts[:-1])
    bag = lambda weights: F.normalize(F.embedding_bag(ids, table, begin, mode="sum", per_sample_weights=weights), dim=1, eps=1e-6)
    subject = (bag(roots) @ attention)[torch.repeat_interleave(torch.arange(len(counts)), counts)]
    meant = (F.normalize(table, dim=1, eps=1e-6)[ids] * subject).sum(1)
    return bag(roots * torch.exp(meant.clamp(-3, 3)))


def english_vectors(static, texts):
    table, attention = (torch.from_numpy(x.astype(np.float32)) for x in (static.rows * static.scales[:, None], static.attention))
    out = []
    for at in range(0, len(texts), 4096):
        ids, roots, starts = [], [], [0]
        for tokens in static.ids([static.with_parts(text) for text in texts[at:at + 4096]]):
            rows = static.row_of[np.array(tokens[:ENGLISH_TOKENS], np.int64)]
            u, c = np.unique(rows[rows >= 0], return_counts=True)
            ids.append(u)
            roots.append(np.sqrt(c))
            starts.append(starts[-1] + len(u))
        ids, roots = (torch.from_numpy(np.concatenate(x)) for x in (ids, roots))
        out.append(encode(table, attention, ids, roots.float(), np.array(starts)).half().numpy())
    return np.concatenate(out)


def lines(path):
    with open(path, encoding="utf-8") as file:
        yield from file


def words(o):
    """Counts words, and chooses whole words, characters, pairs of characters, and pieces of the rarer words."""
    static, counts, english = Static(o.static), collections.defaultdict(collections.Counter), collections.Counter()
    originals = set()
    for line in lines(o.work / "pairs.tsv"):
        language, _, original, text = line.rstrip("\n").split("\t")
        counts[language].update(runs(text))
        if original not in originals:
            originals.add(original)
            english.update(runs(original))
    for line in lines(o.work / "sections.jsonl"):
        section = json.loads(line)
        counts[section["lang"]].update(runs(section["b"]))
    has_row = lambda word: word.isascii() and static.row_of[static.vocab.get(word, 0)] >= 0 and word in static.vocab
    total_english = english.total()
    whole, singles, pairs, rest = {}, collections.Counter(), collections.Counter(), collections.Counter()
    for language, found in counts.items():
        weight = JAPANESE_WEIGHT if language == "ja" else 1
        for run, count in found.items():
            if re.match(f"[{IDEOGRAPHS}]", run):
                for i, char in enumerate(run):
                    singles[char] += weight * count
                    pairs[run[i:i + 2]] += weight * count * (i + 1 < len(run))
        found = {run: count for run, count in found.items() if is_word(run)}
        total = sum(found.values())
        # A word that is as frequent in English has its row in the English table.
        own = {word: count / total for word, count in found.items() if not (has_row(word) and english[word] / total_english > 0.7 * count / total)}
        for word in sorted((word for word in own if len(word) <= PIECE_CHARS), key=lambda word: (-own[word], word))[:WORDS[language]]:
            whole[word] = None
        for word, share in own.items():
            if len(word) > 2 and not has_row(word) and english[word] / total_english <= share:
                rest[word] += 1e6 * share
    pieces = list(whole) + [char for char, _ in singles.most_common(CHARACTERS)] + [pair for pair, _ in pairs.most_common(PAIRS)]
    for letters, size in PIECES.items():
        tokenizer = Tokenizer(models.BPE(unk_token="?", continuing_subword_prefix="##"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        texts = (word for word in sorted(rest) if word not in whole and re.match(f"[{letters}]", word) for _ in range(min(50, max(1, int(4 * rest[word] ** 0.5)))))
        trainer = trainers.BpeTrainer(vocab_size=size, continuing_subword_prefix="##", show_progress=False, special_tokens=["?"], max_token_length=14)
        tokenizer.train_from_iterator(texts, trainer)
        pieces += [piece for piece in sorted(tokenizer.get_vocab()) if piece != "?"]
    pieces = list(dict.fromkeys(pieces))
    reader, other_counts, english_counts = Reader(pieces, static), np.zeros(len(pieces)), np.zeros(len(pieces))
    for sums, found, share in [(english_counts, english, 1.0)] + [(other_counts, counts[language], 1 / len(IN_LATIN_LETTERS)) for language in IN_LATIN_LETTERS]:
        total = found.total()
        for run, count in found.items():
            if is_word(run) and re.match(f"[{LATIN}]", run):
                for row in longest_pieces(run, reader.rows.get)[0]:
                    sums[row] += 1e6 * share * count / total
    odds = np.log((other_counts + 0.5) / (english_counts + 0.5))
    np.savez(o.work / "pieces.npz", pieces=np.array(pieces), odds=odds)
    print(len(pieces), "pieces")


def read(o):
    static = Static(o.static)
    reader = Reader(np.load(o.work / "pieces.npz")["pieces"].tolist(), static)
    originals, original, texts = {}, [], []
    for line in lines(o.work / "pairs.tsv"):
        _, _, english, text = line.rstrip("\n").split("\t")
        original.append(originals.setdefault(english, len(originals)))
        texts.append(text)
    ids, roots, starts = reader.bags(texts, TEXT_TOKENS)
    np.savez(o.work / "pairs.npz", ids=ids, roots=roots, starts=starts, original=np.array(original, np.int32), vectors=english_vectors(static, list(originals)))
    print(len(texts), "pairs")


class Table:
    """The rows that are trained, before the English ones, which are not. Row-wise Adam, only for the rows of a batch."""

    def __init__(self, rows, static):
        self.size = len(rows)
        self.table = torch.cat([rows, torch.from_numpy(static.rows * static.scales[:, None])])
        self.attention = torch.from_numpy(static.attention.astype(np.float32))
        self.mean, self.square, self.steps = torch.zeros(self.size, rows.shape[1]), torch.zeros(self.size, 1), torch.zeros(self.size, 1)

    def encode(self, ids, roots, counts):
        """The vectors of bags, with the rows that `step` then changes."""
        ids, roots, starts = torch.from_numpy(ids), torch.from_numpy(roots), np.concatenate([[0], np.cumsum(counts)])
        self.used, places = torch.unique(ids, return_inverse=True)
        self.local = self.table[self.used].requires_grad_()
        return encode(self.local, self.attention, places, roots, starts)

    def step(self, rate):
        own = self.used < self.size
        rows, gradient = self.used[own], self.local.grad[own]
        self.steps[rows] += 1
        steps = self.steps[rows]
        self.mean[rows] = 0.9 * self.mean[rows] + 0.1 * gradient
        self.square[rows] = 0.98 * self.square[rows] + 0.02 * gradient.pow(2).mean(1, keepdim=True)
        self.table[rows] -= rate * (self.mean[rows] / (1 - 0.9 ** steps)) / ((self.square[rows] / (1 - 0.98 ** steps)).sqrt() + 1e-8)

    def rows(self):
        return self.table[:self.size].numpy()


def taken(ids, roots, starts, which):
    counts = np.diff(starts)[which]
    at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts[which], counts)
    return ids[at].astype(np.int64), roots[at], counts


def mean_rows(ids, roots, starts, original, vectors, usable, size):
    """The mean of the originals of a row's texts."""
    sums = torch.zeros(size, vectors.shape[1])
    for part in np.array_split(usable, len(usable) // 65536 + 1):
        at, weights, lengths = taken(ids, roots, starts, part)
        own, text = at < size, np.repeat(np.arange(len(part)), lengths)
        weights = (weights / np.sqrt(lengths)[text])[own].astype(np.float32)
        occurrences = torch.sparse_coo_tensor(torch.from_numpy(np.stack([at[own], text[own]])), torch.from_numpy(weights), (size, len(part)))
        sums += occurrences @ torch.from_numpy(vectors[original[part]].astype(np.float32))
    return F.normalize(sums, dim=1, eps=1e-9)


def schedule(rate, step, steps, warm):
    return rate * min(1, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6


def translations(found, wanted, original, o):
    """The loss of translations: 1 - cosine, and the cross-entropy among the batch's originals."""
    same = torch.from_numpy(original[:, None] == original[None]) & ~torch.eye(len(original), dtype=torch.bool)
    scores = (found @ wanted.T / o.tau).masked_fill(same, -1e4)
    return (1 - (found * wanted).sum(1)).mean() + o.contrast * F.cross_entropy(scores, torch.arange(len(original)))


def train(o):
    torch.set_num_threads(o.threads)
    rng, static = np.random.default_rng(o.seed), Static(o.static)
    z = np.load(o.work / "pairs.npz")
    ids, roots, starts, original, vectors = (z[name] for name in ("ids", "roots", "starts", "original", "vectors"))
    usable = np.flatnonzero((np.diff(starts) > 0) & (np.abs(vectors[:, :8]).sum(1) > 0)[original])
    size = len(np.load(o.work / "pieces.npz")["pieces"])
    counts = np.bincount(ids[ids < size], minlength=size)
    rarity = (1e-3 / (1e-3 + counts / counts.sum())).astype(np.float32)
    rows = mean_rows(ids, roots, starts, original, vectors, usable, size) * torch.from_numpy(rarity)[:, None]
    table, steps, started = Table(rows, static), int(o.epochs * len(usable) / o.batch), time.time()
    order = np.concatenate([rng.permutation(usable) for _ in range(math.ceil(o.epochs))])
    for step in range(steps):
        which = order[step * o.batch:(step + 1) * o.batch]
        found = table.encode(*taken(ids, roots, starts, which))
        loss = translations(found, torch.from_numpy(vectors[original[which]].astype(np.float32)), original[which], o)
        loss.backward()
        table.step(schedule(o.lr, step, steps, 30))
        if step % 100 == 0:
            print(f"{step}/{steps} {time.time() - started:.0f}s {loss.item():.3f}", flush=True)
    np.savez(o.work / "table.npz", rows=table.rows(), counts=counts)


def four_bits(rows):
    """Rows in 15 steps, and the size of each row's step: that of the least error."""
    top, best, error = np.abs(rows).max(1, keepdims=True).clip(1e-9), None, None
    for share in np.linspace(0.5, 1.0, 21):
        steps = np.clip(np.rint(rows / (top * share / 7)), -7, 7)
        scale = (steps * rows).sum(1, keepdims=True) / (steps * steps).sum(1, keepdims=True).clip(1e-9)
        errors = ((steps * scale - rows) ** 2).sum(1)
        if best is None:
            best, scales, error = steps, scale, errors
        better = errors < error
        best[better], scales[better], error[better] = steps[better], scale[better], errors[better]
    return (best + 8).astype(np.uint8), scales[:, 0].astype(np.float32)


TEXTS = [
    "", "how do I reset the password", "the naïve approach in a café", "Wie setze ich das Passwort zurück?", "Branch wechseln", "Speicherverbrauch",
    "Datenbankverbindungen brechen nachts ab, wenn der Router sie trennt", "die Tabelle `user_roles` fehlt: SELECT * FROM user_roles", "Comment supprimer une branche locale ?",
    "l'index est dans le cache", "¿Cómo se restablece la contraseña?", "Como restaurar um arquivo apagado", "le connessioni al database scadono di notte", "dlaczego połączenie z bazą danych nie działa",
    "Как сбросить пароль базы данных?", "Ошибка в kubectl при обновлении", "làm thế nào để đặt lại mật khẩu", "như thế nào?", "ca\u0300i đa\u0323\u0306t", "如何重置数据库密码", "重置 PostgreSQL 的密码",
    "如何重設資料庫密碼", "々", "龘龘", "データベースのパスワードをリセットする方法", "サーバー", "ログを消す", "데이터베이스 비밀번호 재설정", "CPU를 확인", "αβγ und Ωmega", "maxRetryCount ist zu klein", "utf8で保存",
    "A" * 120, "ÄÖÜ" * 40, "zzzzqqqq xkqj", "mixed: Fehler beim Start of the server. The server does not start because the port is already in use by another process, so it exits",
    "Commit rückgängig machen\nDer letzte Commit wird mit `git reset --soft HEAD~1` zurückgenommen. Die Änderungen bleiben erhalten.",
]


def export(o):
    found, pieces = np.load(o.work / "table.npz"), np.load(o.work / "pieces.npz")
    order = np.argsort(-found["counts"], kind="stable")[:o.size]
    hashes = np.array([piece_hash(piece) for piece in pieces["pieces"].tolist()], np.uint64)
    order = order[np.argsort(hashes[order], kind="stable")]
    order = order[np.diff(hashes[order], prepend=np.uint64(1 << 63)) != 0]
    hashes = hashes[order]
    steps, scales = four_bits(found["rows"][order])
    half = steps.shape[1] // 2
    tensors = {"rows": steps[:, :half] | steps[:, half:] << 4, "scales": scales, "odds": np.clip(np.rint(16 * pieces["odds"][order]), -127, 127).astype(np.int8),
               "starts": np.searchsorted(hashes >> np.uint64(32), np.arange((1 << 16) + 1, dtype=np.uint64)).astype(np.uint32),
               "hashes": (hashes & np.uint64(0xffffffff)).astype(np.uint32)}
    static = Static(o.static)
    meta = {"name": "static-multilingual", "version": o.version, "trained": o.date, "english": f"{static.meta['name']} {static.meta['version']}", "license": "Apache-2.0",
            "sha256": hashlib.sha256(b"".join(tensors[name].tobytes() for name in sorted(tensors))).hexdigest()}
    out = pathlib.Path(o.out)
    write(out / "multilingual.safetensors", pack(tensors, meta))
    table, rows = Multilingual(out / "multilingual.safetensors", static), []
    for text in TEXTS:
        english, other = table.tokens(text)
        vector = ",".join(f"{value:.6f}" for value in table.encode(text))
        rows.append(f'{{"text": {json.dumps(text)}, "english": {json.dumps(english)}, "rows": {json.dumps(other)}, "vector": [{vector}]}}')
    write(out / "reference" / "multilingual.json", ("[\n" + ",\n".join(rows) + "\n]\n").encode())
    print(len(order), "rows,", (out / "multilingual.safetensors").stat().st_size, "bytes")


def main():
    folder = pathlib.Path(__file__).parent
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("what", choices=["words", "read", "train", "export"])
    a.add_argument("--work", required=True, type=pathlib.Path, help="the folder of parallel.py's files")
    a.add_argument("--static", default=str(folder / "static.safetensors"))
    a.add_argument("--out", default=str(folder))
    a.add_argument("--size", type=int, default=100000, help="export: the most rows")
    a.add_argument("--version")
    a.add_argument("--date", help="of the training, YYYY-MM-DD")
    a.add_argument("--epochs", type=float, default=1.0)
    a.add_argument("--batch", type=int, default=2048)
    a.add_argument("--lr", type=float, default=0.01)
    a.add_argument("--tau", type=float, default=0.05)
    a.add_argument("--contrast", type=float, default=0.2)
    a.add_argument("--seed", type=int, default=7)
    a.add_argument("--threads", type=int, default=1)
    o = a.parse_args()
    {"words": words, "read": read, "train": train, "export": export}[o.what](o)


if __name__ == "__main__":
    main()
