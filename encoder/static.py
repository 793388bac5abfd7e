"""The encoder as a reader of the artifact sees it: numpy only, besides the tokenizer."""
import json
import re
import struct

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
                if self.attention is not None:
                    subject = as_bytes(as_bytes(v / max(np.linalg.norm(v), 1e-12)) @ self.attention)
                    v = (w * np.exp(np.clip(rows @ subject / np.linalg.norm(rows, axis=1).clip(1e-12), -3, 3))) @ rows
                out[i] = v / max(np.linalg.norm(v), 1e-12)
        return out

    def project(self, teacher):
        """Teacher vectors in the space of the static ones."""
        x = teacher - self.mean
        if self.projection is not None:
            x = x @ self.projection.T
        return x / np.linalg.norm(x, axis=1, keepdims=True)
