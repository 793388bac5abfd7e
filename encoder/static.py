"""The encoder as a reader of the artifact sees it: numpy only, besides the tokenizer."""
import json
import re
import struct
import unicodedata

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

DAMPING = {"count": lambda c: c, "sqrt": np.sqrt, "log": lambda c: 1 + np.log(c)}


def as_bytes(values):
    """Rounded to 127 steps on each side, as a reader with byte arithmetic has them."""
    scale = max(np.abs(values).max(), 1e-12) / 127
    return np.rint(values / scale) * scale


def camel_case(word):
    """The parts of a word in camel case; any other word is one part."""
    parts = re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", word) if word.isascii() else [word]
    return [word] if len(parts) > 8 or len(parts) == 2 and len(parts[1]) <= 2 else parts


class Static:
    def __init__(self, path):
        t = load_file(path)
        with open(path, "rb") as f:
            n = struct.unpack("<Q", f.read(8))[0]
            self.meta = json.loads(f.read(n))["__metadata__"]
        self.rows, self.scales, self.mean = t["rows"], t["scales"], t["mean"]
        self.projection, self.attention = t.get("projection"), t.get("attention")
        if self.attention is not None:
            self.attention = np.stack([as_bytes(column) for column in self.attention.T]).T
        self.all_vocab = bytes(t["all_vocab"]).decode().split("\n")
        self.kept = t["kept"]
        self.row_of = np.full(len(self.all_vocab), -1, np.int64)
        self.row_of[self.kept] = np.arange(len(self.kept))
        self.damping = DAMPING[self.meta["damping"]]
        self.vocab = vocab = {w: i for i, w in enumerate(self.all_vocab)}
        self.tok = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
        self.tok.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
        self.tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def ids(self, texts):
        return [e.ids for e in self.tok.encode_batch(texts, add_special_tokens=False)]

    def with_parts(self, text):
        """The text in which the parts of a word in camel case follow it, unless the word is a token."""
        def extend(match):
            word = match[0]
            parts = camel_case(word)
            return " ".join([word, *parts]) if len(parts) > 1 and word.lower() not in self.vocab else word
        return re.sub(r"[^\W_]+", extend, text)

    def encode(self, texts, limit=None):
        out = np.zeros((len(texts), self.rows.shape[1]), np.float32)
        for i, ids in enumerate(self.ids([self.with_parts(text) for text in texts])):
            u, c = np.unique(np.array(ids[:limit], np.int64), return_counts=True)
            r = self.row_of[u] if len(u) else np.zeros(0, np.int64)
            u, c = r[r >= 0], c[r >= 0].astype(np.float32)
            if len(u):
                w, rows = self.damping(c) * self.scales[u], self.rows[u].astype(np.float32)
                v = w @ rows
                out[i] = self.attend(w, rows)
        return out

    def attend(self, weights, rows):
        """The vector of rows, each with its weight."""
        v = weights @ rows
        if self.attention is not None:
            subject = as_bytes(as_bytes(v / max(np.linalg.norm(v), 1e-12)) @ self.attention)
            v = (weights * np.exp(np.clip(rows @ subject / np.linalg.norm(rows, axis=1).clip(1e-12), -3, 3))) @ rows
        return v / max(np.linalg.norm(v), 1e-12)

    def project(self, teacher):
        """Teacher vectors in the space of the static ones."""
        x = teacher - self.mean
        if self.projection is not None:
            x = x @ self.projection.T
        return x / np.linalg.norm(x, axis=1, keepdims=True)


IDEOGRAPHS = "\u3005\u3007\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
LATIN = "A-Za-z0-9\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u1e00-\u1eff"
CYRILLIC, HANGUL, KATAKANA = "\u0400-\u04ff", "\uac00-\ud7a3", "\u30a1-\u30ff"
SCRIPTS = LATIN, CYRILLIC, HANGUL, KATAKANA, IDEOGRAPHS
# Runs of one script, and what is between them.
RUN = re.compile("|".join(f"[{s}]+" for s in SCRIPTS) + "|[^\\s" + "".join(SCRIPTS) + "]+")
PIECE_CHARS, FREE_CHARS = 24, 4
# The same in katakana, whose letters are syllables.
FREE_SYLLABLES = 2
DECAY, ENGLISH_ODDS, MARKS_ODDS, LEAST_ODDS = 0.9, -1.5, 2.0, 1.0


def piece_hash(piece):
    """FNV-1a, and a step that mixes the high bits; 48 bits are kept."""
    state = 0xcbf29ce484222325
    for byte in piece.encode():
        state = (state ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return ((state ^ state >> 32) * 0x9e3779b97f4a7c15 & 0xffffffffffffffff) >> 16


def longest_pieces(word, find):
    """The rows of a word: its own, or those of its pieces, the longest first; none, if a part has none."""
    own, out, at = find(word), [], 0
    if own is not None:
        return [own], True
    while at < len(word) <= 100:
        for end in range(min(len(word), at + PIECE_CHARS), at, -1):
            piece = word[at:end]
            row = find(piece) if at == 0 else find("##" + piece)
            if row is None and at and len(piece) >= (FREE_SYLLABLES if "\u30a1" <= piece[0] <= "\u30ff" else FREE_CHARS):
                row = find(piece)
            if row is not None:
                break
        else:
            return [], False
        out.append(row)
        at = end
    return out, False


def characters(run, find):
    """The rows of each character, then those of each pair."""
    parts = [*run, *(run[i:i + 2] for i in range(len(run) - 1))]
    return [row for row in map(find, parts) if row is not None]


class Multilingual:
    """The multilingual table beside the English one. A row of it is numbered after the English ones."""

    def __init__(self, path, static):
        t = load_file(path)
        self.static, self.starts, self.hashes, self.odds = static, t["starts"], t["hashes"], t["odds"].astype(np.float32) / 16
        packed = t["rows"]
        values = np.concatenate([packed & 15, packed >> 4], 1).astype(np.int16) - 8
        self.rows = values.astype(np.float32) * t["scales"][:, None]

    def find(self, piece):
        wanted = piece_hash(piece)
        start, end = self.starts[wanted >> 32], self.starts[(wanted >> 32) + 1]
        place = np.flatnonzero(self.hashes[start:end] == wanted & 0xffffffff)
        return int(start + place[0]) if len(place) else None

    def words(self, text):
        """For each run: English tokens, multilingual rows, and the odds of the latter if both are possible."""
        vocab, row_of = self.static.vocab, self.static.row_of
        for run in RUN.findall(unicodedata.normalize("NFC", self.static.with_parts(text))):
            if not re.match(f"[{LATIN}]", run):
                is_word = re.match(f"[{CYRILLIC}{HANGUL}{KATAKANA}]", run)
                rows = longest_pieces(run.lower(), self.find)[0] if is_word else characters(run, self.find) if re.match(f"[{IDEOGRAPHS}]", run) else []
                yield ([] if rows else self.static.ids([run])[0]), rows, None
                continue
            tokens = self.static.ids([run])[0]
            rows, has_own = longest_pieces(run.lower(), self.find)
            if len(run) == 1 and run.isascii() or re.search("[0-9]", run) or not rows or not tokens:
                yield tokens, [], None
                continue
            if not has_own and run.isascii() and len(tokens) == 1 and row_of[tokens[0]] >= 0:
                rows = []
            odds = (float(np.mean(self.odds[rows])) if rows else ENGLISH_ODDS) + (0 if run.isascii() else MARKS_ODDS)
            yield tokens, rows, odds

    def tokens(self, text):
        """English tokens, and multilingual rows, each word in the language that the words around it are in."""
        words = list(self.words(text))
        odds = [o for _, _, o in words if o is not None]
        sums, before, after = list(odds), 0.0, 0.0
        for i, o in enumerate(odds):
            sums[i] += before
            before = DECAY * (before + o)
        for i, o in reversed(list(enumerate(odds))):
            sums[i] += after
            after = DECAY * (after + o)
        sums, english, other = iter(sums), [], []
        for tokens, rows, o in words:
            is_other = next(sums) > LEAST_ODDS if o is not None else not tokens
            (other.extend(rows) if is_other and rows else english.extend(tokens))
        return english, other

    def encode(self, text):
        english, other = self.tokens(text)
        static = self.static
        english = static.row_of[np.array(english, np.int64)]
        parts = []
        for ids, table in ((english[english >= 0], static.rows.astype(np.float32) * static.scales[:, None]), (np.array(other, np.int64), self.rows)):
            u, c = np.unique(ids, return_counts=True)
            parts.append((np.sqrt(c), table[u]))
        weights, rows = (np.concatenate(x) for x in zip(*parts))
        return static.attend(weights.astype(np.float32), rows) if len(rows) else np.zeros(static.rows.shape[1], np.float32)
