#!/usr/bin/env python3
"""Makes docs/assets/demo.svg: a query, its answer and a session start, as the program prints them.

    docs/assets/make-picture.py target/debug/ack-memory

With --check it writes nothing and fails if the picture is another one.

Runs the binary on its sample scopes, in a temporary folder, without network. Needs Python 3.10 and git.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

COLUMNS = 98
FONT = 14
CHARACTER = 8.43  # width of a character at this font size
LINE = 19
MARGIN = 18
BAR = 34  # height of the window's title bar

CHANGED = "migrations/20250302_entry.sql"
QUERY = "container killed exit code 137"

STYLE = """
  .window { fill: #16181d; stroke: #3a3f4b }
  text { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d7dae0; white-space: pre }
  .bold { font-weight: 700; fill: #ffffff }
  .dim { fill: #8b93a3 }
  .underlined { text-decoration: underline }
  .green { fill: #8fce7b }
  .cyan { fill: #6fc3df }
  .prompt { fill: #e5b567 }
  @media (prefers-color-scheme: light) {
    .window { fill: #fbfbfa; stroke: #d0d4da }
    text { fill: #24292f }
    .bold { fill: #000000 }
    .dim { fill: #6a727d }
    .green { fill: #1a7f37 }
    .cyan { fill: #0b6e8f }
    .prompt { fill: #9a6700 }
  }
""" % FONT

CODES = {"1": "bold", "2": "dim", "4": "underlined", "32": "green", "36": "cyan"}


def run(arguments, folder, stdin=""):
    environment = {"HOME": folder, "PATH": os.environ["PATH"], "CLICOLOR_FORCE": "1"}
    done = subprocess.run(arguments, cwd=folder, env=environment, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout


def pieces(line):
    """A line with escape sequences as (classes, text) pairs. Styles add up until they are reset."""
    styles, found = [], []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            if part:
                found.append((" ".join(styles), part))
        elif code[1] in CODES:
            styles = [*styles, CODES[code[1]]]
        else:
            styles = []
    return found


def wrapped(line):
    """The lines that a terminal makes of one, broken at blanks."""
    rows, row, width = [], [], 0
    indent = " " * len(re.match(r"(?:> )? *", re.sub(r"\x1b\[[0-9;]*m", "", line))[0])
    for style, text in pieces(line):
        for word in re.findall(r"\S+|\s+", text):
            if width + len(word) > COLUMNS and word.strip():
                rows.append(row)
                row, width = ([("", indent)], len(indent)) if indent else ([], 0)
            row.append((style, word))
            width += len(word)
    return [*rows, row]


def typed(command):
    return [[("prompt", "$ "), ("bold", command)]]


def said(text, upto=None):
    lines = text.rstrip("\n").split("\n")
    shown = lines if upto is None else lines[:upto]
    rows = [row for line in shown for row in wrapped(line)]
    return rows if len(shown) == len(lines) else [*rows, [("dim", "…")]]


def screen(binary, folder):
    root = f"{folder}/root"
    run([binary, "demo", root], folder)
    # A repository in which one file was edited.
    project = Path(folder, "ledger-api")
    changed = project / CHANGED
    changed.parent.mkdir(parents=True)
    changed.write_text("create table entry (id bigint primary key);\n")
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for step in [["init", "-q"], ["add", "."], ["commit", "-qm", "entry"]]:
        run([*git, *step], folder)
    changed.write_text(changed.read_text() + "alter table entry add column account_id bigint;\n")

    ask = [binary, "--root", root, "-C", str(project)]
    answer = run([*ask, "query", QUERY, "-n", "1"], folder)
    answer = answer.split("\x1b[2mnext page")[0]
    hook = json.loads(run([*ask, "hook", "session-start", "--client", "claude-code"], folder, json.dumps({"cwd": str(project)})))
    start = hook["hookSpecificOutput"]["additionalContext"]
    # The beginning, up to the end of the first memory.
    ends = [number for number, line in enumerate(start.split("\n"), 1) if line.startswith(">   id ")]
    return [
        *typed(f'ack-memory query "{QUERY}" -n 1'),
        *said(answer),
        [],
        *typed("ack-memory hook session-start"),
        [("dim", f"# the text that a session in ledger-api gets while {CHANGED} is edited")],
        *said(start, upto=ends[0]),
    ]


def svg(rows):
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = BAR + len(rows) * LINE + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>A query with its answer, and what a session begins with</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="window" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]
    for number, colour in enumerate(["#ec6a5e", "#f4bf4f", "#61c554"]):
        out.append(f'<circle cx="{MARGIN + 5 + 18 * number}" cy="17" r="5.5" fill="{colour}"/>')
    for number, row in enumerate(rows):
        column, y = 0, BAR + (number + 1) * LINE - 5
        for style, text in merged(row):
            if text.strip():
                lead = len(text) - len(text.lstrip())
                x = MARGIN + (column + lead) * CHARACTER
                length = len(text.strip()) * CHARACTER
                name = f' class="{style}"' if style else ""
                out.append(
                    f'<text{name} xml:space="preserve" x="{x:.1f}" y="{y}" textLength="{length:.1f}" lengthAdjust="spacing">{escape(text.strip())}</text>'
                )
            column += len(text)
    return "\n".join([*out, "</svg>"]) + "\n"


def merged(row):
    """Neighbours of one style as one."""
    out = []
    for style, text in row:
        if out and out[-1][0] == style:
            out[-1] = (style, out[-1][1] + text)
        else:
            out.append((style, text))
    return out


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1:
        sys.exit(__doc__)
    binary = str(Path(words[0]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        picture = svg(screen(binary, folder))
    file = Path(__file__).with_name("demo.svg")
    if words == sys.argv[1:]:
        file.write_text(picture)
    elif file.read_text() != picture:
        sys.exit(f"{file} is out of date: run {__file__} {words[0]}")


main()
