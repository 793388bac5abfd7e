"""From unpacked packages to pairs of an English text and its translation, and to sections under their headings in both languages.

Writes pairs.tsv (language, source, English, translation), sections.jsonl, and held.jsonl: the sections of the books that are held out.
"""
import argparse
import collections
import glob
import gzip
import html
import json
import os
import pathlib
import re
import struct
import subprocess
import zipfile

LOCALES = "de fr es it pl pt pt_BR ru ja ko vi zh_CN zh_TW zh_Hans zh_Hant".split()
LANGUAGES = sorted({locale[:2] for locale in LOCALES})
# Held out to measure with; never trained on.
HELD_OUT = "debian-faq", "debian-handbook"
# Catalogs of names (countries, stars, elements), and those of git, whose texts the development sets are about.
NO_CATALOGS = "git", "iso_", "iso-", "tortoise", "kstars", "kalzium", "stellarium", "gcompris", "xkeyboard"


def language(name):
    """The language of a locale's folder or file name, or None."""
    name = re.split(r"[.@]", name)[0].replace("-", "_").lower()
    return name[:2] if name[:2] in LANGUAGES and name[2:] in {"", "_de", "_fr", "_es", "_it", "_pl", "_pt", "_br", "_ru", "_jp", "_kr", "_vn", "_cn", "_tw", "_hk", "_hans", "_hant"} else None


# Pages: blocks of (tag, text).

TAG = re.compile(r"<!--.*?-->|<(/?)([a-zA-Z][\w:.-]*)([^<>]*?)/?>|<[!?][^>]*>", re.S)
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6", "title"}
CODE = {"pre", "screen", "programlisting", "synopsis", "cmdsynopsis"}
SKIPPED = {"script", "style", "head", "nav"}
BLOCKS = HEADINGS | CODE | set(
    "p li dt dd td th para simpara term listitem item div section sect1 sect2 sect3 sect4 chapter article body ul ol dl table tr note example figure blockquote media info page "
    "steps list terms tree caption subtitle varlistentry itemizedlist orderedlist variablelist desc".split())


def blocks(text):
    """The blocks of a page in HTML, DocBook or Mallard."""
    out, stack, current, skipping, at = [], [], [], 0, 0

    def flush():
        text = html.unescape("".join(current))
        current.clear()
        tag = next((tag for tag in reversed(stack) if tag in HEADINGS | CODE), stack[-1] if stack else "p")
        text = text.strip("\n") if tag in CODE else " ".join(text.split())
        if text.strip():
            out.append((tag, text))

    for match in TAG.finditer(text):
        if not skipping:
            current.append(text[at:match.start()])
        at = match.end()
        tag = (match[2] or "").lower().split(":")[-1]
        is_end, is_empty = match[1] == "/", match[0].endswith("/>")
        if tag in SKIPPED and not is_empty:
            skipping = max(0, skipping + (-1 if is_end else 1))
        elif tag == "br":
            current.append(" ")
        elif tag in BLOCKS:
            if not skipping:
                flush()
            if is_end and tag in stack:
                while stack.pop() != tag:
                    pass
            elif not is_end and not is_empty:
                stack.append(tag)
    flush()
    return out


def page(path):
    text = read(path)
    start = text.find('<div id="DisplayArea"')  # a help page's frame
    if start >= 0:
        text = text[start:text.find('<div id="SearchFrame"')]
    text = re.sub(r"<head\b.*?</head>", "", text, flags=re.S | re.I)
    return blocks(re.sub(r'<div class="(navheader|navfooter|toc|top|bottomlang|footer|toplang)".*?</div>', "", text, flags=re.S))


def read(path):
    if not os.path.exists(path):
        return ""  # a link to another package
    data = pathlib.Path(path).read_bytes()
    data = gzip.decompress(data) if path.endswith(".gz") else data
    named = re.search(rb"(?:charset|encoding)=[\"']?([\w-]+)", data[:1500])
    for encoding in [named[1].decode()] * bool(named) + ["utf-8", "latin-1"]:
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            pass


FONTS = re.compile(r"\\f\[[^\]]*\]|\\f\(..|\\f.|\\s[-+]?\d|\\[&%:/,^|c]")
SIGNS = {"\\-": "-", "\\(aq": "'", "\\(dq": '"', "\\e": "\\", "\\ ": " ", "\\~": " ", "\\(em": "—", "\\(lq": "“", "\\(rq": "”", "\\(bu": "•"}
PARAGRAPH = set("PP P LP IP TP HP RS RE sp Pp It Bl El TQ".split())
WORDS = set("B I BR IR RB RI BI IB SM SB Nm Fl Ar Pa Cm Nd Xr Dq Sq Em Sy Li".split())
IGNORED = tuple('.\\" \'\\" \\" .ig .de .ds .if .ie .el .nr .so .TH .Dd .Dt .Os .. .hy .ad .ft .tr .ne'.split())


def manual(path):
    """The blocks of a manual page."""
    out, current, tag, is_code = [], [], "p", False

    def plain(text):
        for sign, char in SIGNS.items():
            text = text.replace(sign, char)
        return FONTS.sub("", text)

    def flush():
        nonlocal tag
        text = " ".join(" ".join(current).split())
        current.clear()
        if text:
            out.append(("pre" if is_code else tag, text))
        tag = "p"

    for line in read(path).split("\n"):
        if line.startswith(IGNORED):
            continue
        macro = re.match(r"[.'] *(\w+)\s*(.*)", line)
        if not macro:
            current.append(plain(line))
            if not line.strip() and not is_code or tag == "dt":
                flush()
            continue
        name, rest = macro[1], plain(macro[2]).strip()
        if name in ("SH", "SS", "Sh", "Ss"):
            flush()
            is_code, tag = False, "h1" if name in ("SH", "Sh") else "h2"
            current.append(rest.strip('"'))
            if rest:
                flush()
        elif name in PARAGRAPH:
            flush()
            if name == "IP" and rest:
                out.append(("dt", rest))
            tag = "dt" if name == "TP" else tag
        elif name in ("nf", "EX", "Bd", "fi", "EE", "Ed"):
            flush()
            is_code = name in ("nf", "EX", "Bd")
        elif name in WORDS:
            joined = re.sub(r'"([^"]*)"|\s+', lambda part: part[1] or "", rest) if len(name) == 2 and name.isupper() and name not in ("SM", "SB") else rest
            current.append(joined.replace('"', ""))
            if tag == "dt":
                flush()
    flush()
    return out


def divided(blocks):
    """Blocks before the first heading, then those of each section."""
    out = [[]]
    for block in blocks:
        if block[0] in HEADINGS:
            out.append([])
        out[-1].append(block)
    return out


def aligned(english, other):
    """Pairs of blocks, where two versions of a page have the same structure; the headings at least."""
    tags = lambda blocks: [tag for tag, _ in blocks]
    if tags(english) == tags(other):
        return list(zip(english, other))
    ones, others = divided(english), divided(other)
    if len(ones) != len(others):
        return []
    out = []
    for one, two in zip(ones, others):
        out += zip(one, two) if tags(one) == tags(two) else zip(one[:1], two[:1])
    return out


def body(section):
    text, length = [], 0
    for _, part in section[1:]:
        if length > 1500:
            break
        text.append(part)
        length += len(part)
    return "\n".join(text)[:2000]


# What is left of a text: no markup, no marks of menu keys.

MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
MENU_KEY = re.compile(r"[ ]?\((?:&|_|~)[A-Za-z0-9]\)|(?<!\w)[_~](?=\w)|(?<=\w)~(?=\w)|&(?=\w)(?!\w+;)")
NUMBER = re.compile(r"^(第|제)?\s*[A-Z]?[\d.]+\.?\s*(章|부|장)?\s*")


def clean(text):
    if "<" in text or "&" in text:
        text = html.unescape(MARKUP.sub(" ", text))
    return " ".join(MENU_KEY.sub("", text).split())


def is_pair(english, other):
    if english == other or not 2 <= len(english) <= 1200 or not 1 <= len(other) <= 1200:
        return False
    if len(english) > 30 and not 0.25 < len(other.encode()) / len(english) < 5:
        return False
    return bool(re.search(r"[A-Za-z]{2}", english) and re.search(r"\w", other)) and not re.search("[^\x00-\u024f\u2000-\u2bff]", english)


def shingles(text):
    """Eight words in a row, or twelve characters where there are no spaces."""
    words = re.findall(r"\w+", text.lower())
    yield from (hash(" ".join(words[i:i + 8])) for i in range(len(words) - 7))
    for run in re.findall("[\u3005-\u30ff\u3400-\u9fff]+", "".join(text.split())):
        yield from (hash(run[i:i + 12]) for i in range(len(run) - 11))


class Corpus:
    def __init__(self, work, avoid):
        self.pairs, self.sections, self.held = (open(work / name, "w", encoding="utf-8") for name in ("pairs.tsv", "sections.jsonl", "held.jsonl"))
        self.seen, self.counts, self.avoided = set(), collections.Counter(), set()
        for path in avoid:
            for line in open(path, encoding="utf-8"):
                for value in json.loads(line).values():
                    for text in value if isinstance(value, list) else [value]:
                        if isinstance(text, str):
                            self.avoided.update(shingles(text))

    def is_avoided(self, *texts):
        return any(part in self.avoided for text in texts if len(text) > 11 for part in shingles(text))

    def pair(self, language, source, english, other):
        english, other = clean(english), clean(other)
        key = hash((language, english, other))
        if source.startswith(HELD_OUT) or key in self.seen or not is_pair(english, other):
            return
        self.seen.add(key)
        if self.is_avoided(english, other):
            self.counts["avoided"] += 1
            return
        self.counts[language] += 1
        self.pairs.write(f"{language}\t{source}\t{english}\t{other}\n")

    def versions(self, language, source, english, other):
        """Two versions of a page, as blocks."""
        for (tag, one), (_, two) in aligned(english, other):
            if tag not in CODE:
                self.pair(language, source, one, two)
        ones, others = divided(english)[1:], divided(other)[1:]
        if len(ones) != len(others):
            return
        for one, two in zip(ones, others):
            headings, bodies = (one[0][1], two[0][1]), (body(one), body(two))
            known = {text for _, text in one[1:]}
            same = sum(text in known for tag, text in two[1:] if tag not in CODE)
            if len(bodies[1]) > 60 and headings[0] != headings[1] and same < 0.3 * len(two) and not self.is_avoided(*headings, *bodies):
                row = {"lang": language, "source": source, "h": NUMBER.sub("", headings[1]), "hen": NUMBER.sub("", headings[0]), "b": bodies[1], "ben": bodies[0]}
                (self.held if source.startswith(HELD_OUT) else self.sections).write(json.dumps(row, ensure_ascii=False) + "\n")
                self.counts[language, "sections"] += 1

    def documents(self, name, paths, place, parse=page):
        """Pages whose versions have the same `place`: its key and its language, or None."""
        pages = collections.defaultdict(lambda: collections.defaultdict(list))
        for path in paths:
            found = place(path)
            if found and found[1]:
                pages[found[0]][found[1]].append(path)
        for key, versions in pages.items():
            if "en" in versions:
                english = parse(min(versions.pop("en")))
                for language, paths in versions.items():
                    for path in paths:
                        self.versions(language, f"{name}/{key}", english, parse(path))


def catalog(path):
    """The messages of a compiled gettext catalog."""
    data = pathlib.Path(path).read_bytes()
    end = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    if len(data) < 28:
        return
    count, *tables = struct.unpack(end + "3I", data[8:20])
    places = [struct.unpack(f"{end}{2 * count}I", data[table:table + 8 * count]) for table in tables]
    encoding = "utf-8"
    for i in range(0, 2 * count, 2):
        key, value = (data[place[i + 1]:place[i + 1] + place[i]] for place in places)
        if not key:
            named = re.search(rb"charset=([\w-]+)", value)
            encoding = named[1].decode() if named else encoding
            continue
        try:
            keys, values = key.decode().rpartition("\x04")[2].split("\0"), value.decode(encoding).split("\0")
        except (UnicodeDecodeError, LookupError):
            continue
        yield keys[0], values[0]
        if len(keys) > 1 and len(values) > 1:
            yield keys[-1], values[-1]


def catalogs(docs, corpus):
    for path in glob.iglob(f"{docs}/**/*.mo", recursive=True):
        parts = path.split("/")
        name = parts[parts.index("LC_MESSAGES") - 1] if "LC_MESSAGES" in parts else parts[-1][:-3].rpartition("-")[2]
        if language(name) and not parts[-1].startswith(NO_CATALOGS) and "/git" not in path:
            for english, other in catalog(path):
                corpus.pair(language(name), "mo/" + path[len(docs) + 1:].split("/")[0], english, other)


def help_pages(docs, corpus):
    """The help of an office suite: paragraphs have numbers."""
    def paragraphs(path):
        found = re.finditer(r'<(p|h[1-6]) id="([^"]+)"[^>]*>(.*?)</\1>', read(path), re.S)
        return {match[2]: html.unescape(re.sub(r"<[^>]+>", "", match[3])) for match in found}
    base = f"{docs}/libreoffice-help-en-us/usr/share/libreoffice/help/en-US/text/"
    for path in glob.iglob(base + "**/*.html", recursive=True):
        english, blocks = paragraphs(path), page(path)
        for folder in glob.glob(f"{docs}/libreoffice-help-*/usr/share/libreoffice/help/*/text/"):
            name, other = language(folder.split("/")[-3]), folder + path[len(base):]
            if name and os.path.exists(other):
                for number, text in paragraphs(other).items():
                    corpus.pair(name, "libreoffice-help", english.get(number, ""), text)
                if "sbasic" in other or "guide" in other:
                    corpus.versions(name, "libreoffice-help", blocks, page(other))


def messages(text, name):
    """The messages of a language pack's file."""
    if name.endswith(".dtd"):
        yield from re.findall(r'<!ENTITY\s+(\S+)\s+"([^"]*)"', text)
    elif name.endswith(".properties"):
        yield from re.findall(r"^([\w.-]+)\s*=\s*(.*)$", text, re.M)
    elif name.endswith(".ftl"):
        owner = ""
        for match in re.finditer(r"^(-?[\w-]+|\s+\.[\w-]+)[ ]*=[ ]*(.*(?:\n[ ]+[^\s{}\[\]*.].*)*)", text, re.M):
            owner = owner if match[1].strip().startswith(".") else match[1]
            if "->" not in match[2]:
                yield owner + match[1].strip(), re.sub(r"\{\s*-brand-[\w-]+\s*\}", "Firefox", match[2])


def language_packs(docs, corpus):
    def strings(package):
        out = {}
        for path in glob.glob(f"{docs}/{package}/usr/lib/**/*.xpi", recursive=True):
            with zipfile.ZipFile(path) as pack:
                for name in pack.namelist():
                    if name.endswith((".ftl", ".properties", ".dtd")):
                        place = re.sub(r"^.*?/locale/[^/]+/|^.*?localization/[^/]+/", "", name)
                        out |= {(place, key): value for key, value in messages(pack.read(name).decode("utf-8", "replace"), name)}
        return out
    for program in ("firefox-esr", "thunderbird"):
        english = strings(f"{program}-l10n-en-gb")
        for path in glob.glob(f"{docs}/{program}-l10n-*"):
            name = language(path.rpartition("-l10n-")[2])
            for key, value in strings(os.path.basename(path)).items() if name else ():
                corpus.pair(name, program, english.get(key, ""), value)


def message_files(docs, corpus):
    """Messages in JSON: of a wiki, and of a compiler."""
    plain = lambda text: re.sub(r"\{\{[A-Z]+:([^{}|]*)[^{}]*\}\}|\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|'''?", lambda match: match[1] or match[2] or "", text)
    for path in glob.glob(f"{docs}/mediawiki/**/i18n/**/en.json", recursive=True):
        english = json.load(open(path))
        for locale in LOCALES:
            other = path[:-7] + locale.lower().replace("_", "-") + ".json"
            for key, value in json.load(open(other)).items() if os.path.exists(other) else ():
                if isinstance(value, str) and isinstance(english.get(key), str):
                    corpus.pair(language(locale), "mediawiki", plain(english[key]), plain(value))
    for path in glob.glob(f"{docs}/node-typescript/usr/**/diagnosticMessages.generated.json", recursive=True):
        name = language(path.split("/")[-2])
        for key, value in json.load(open(path)).items() if name else ():
            corpus.pair(name, "typescript", re.sub(r"_\d+$", "", key).replace("_", " "), value)


def descriptions(lists, corpus):
    """Descriptions of packages: a line, and paragraphs."""
    def load(path):
        out, current, number = {}, [], ""
        text = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        for line in text.split("\n"):
            if line.startswith("Description-md5:"):
                number = line.split()[1]
            elif line.startswith("Description-"):
                current = out[number] = [line.partition(":")[2].strip(), ""]
            elif line == " .":
                current.append("")
            elif line.startswith(" ") and current:
                current[-1] = f"{current[-1]} {line.strip()}".strip()
        return out
    english = {number: text for path in glob.glob(f"{lists}/*_main*Translation-en*") for number, text in load(path).items()}
    for path in glob.glob(f"{lists}/*Translation-*"):
        name = language(re.search(r"Translation-([^.]+)", path)[1].replace("%5f", "_"))
        for number, text in load(path).items() if name else ():
            if len(english.get(number, [])) == len(text):
                for one, two in zip(english[number], text):
                    corpus.pair(name, "descriptions", one, two)


def collect(docs, lists, corpus):
    files = lambda pattern: sorted(glob.glob(f"{docs}/{pattern}", recursive=True))
    english_or = lambda name, english: "en" if name == english else language(name)

    def folder(mark, english):
        """The language is the folder after `mark`."""
        def place(path):
            name, _, rest = path.partition(mark)[2].partition("/")
            return rest, english_or(name, english)
        return place

    def suffix(path):
        match = re.match(r"(.*?)\.([a-z]{2}(?:-[a-z]{2})?)\.html$", os.path.basename(path))
        return match and (match[1], english_or(match[2], "en"))

    def package(path):
        """The language is in the package's name, after the book's."""
        match = re.match(r"([a-z]+-[a-z]+)-?(.*)", path[len(docs) + 1:].split("/")[0])
        return re.sub(r"\.[a-z]{2}(-[a-z]{2})?\.html$", ".html", os.path.basename(path)), english_or(match[2] or "en", "en")

    def manual_page(path):
        parts = path.partition("/share/man/")[2].split("/")
        return parts[-1], "en" if len(parts) == 2 else language(parts[0])

    corpus.documents("apache", files("apache2-doc/usr/share/doc/apache2-doc/manual/**/*.html"), folder("/manual/", "en"))
    for book in ("debian-faq", "debian-reference", "maint-guide", "debmake-doc"):
        corpus.documents(book, files(f"{book}*/usr/share/**/*.html"), suffix)
    for book in ("developers-reference", "maint-guide", "aptitude-doc"):
        corpus.documents(book, files(f"{book}*/usr/share/**/*.html"), package)
    corpus.documents("debian-handbook", files("debian-handbook/usr/share/doc/debian-handbook/html/*/*.html"), folder("/html/", "en-US"))
    corpus.documents("installation-guide", files("installation-guide-amd64/usr/share/doc/installation-guide-amd64/*/*.html"), folder("/doc/installation-guide-amd64/", "en"))
    corpus.documents("gnome-help", files("*/usr/share/help/**/*.page") + files("*/usr/share/help/**/*.docbook"), folder("/help/", "C"))
    corpus.documents("kde", files("*/usr/share/doc/HTML/**/*.docbook"), folder("/HTML/", "en"))
    corpus.documents("manual", files("*/usr/share/man/**/*.gz"), manual_page, manual)
    descriptions(lists, corpus)
    help_pages(docs, corpus)
    language_packs(docs, corpus)
    message_files(docs, corpus)
    catalogs(docs, corpus)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--work", required=True)
    a.add_argument("--docs", required=True, help="the unpacked packages")
    a.add_argument("--lists", required=True, help="apt's lists, with the translated descriptions")
    a.add_argument("--avoid", nargs="*", default=[], help="files of labelled sets: nothing that shares eight words with them is used")
    o = a.parse_args()
    corpus = Corpus(pathlib.Path(o.work), o.avoid)
    collect(o.docs.rstrip("/"), o.lists, corpus)
    print({str(key): count for key, count in corpus.counts.items()})


if __name__ == "__main__":
    main()
