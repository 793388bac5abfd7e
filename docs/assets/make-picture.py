#!/usr/bin/env python3
"""Makes the pictures of a terminal in docs/assets, from what the program prints.

    docs/assets/make-picture.py target/debug/ack-memory

With --check it writes nothing and fails if a picture of the sample scopes is another one.

Runs the binary on its sample scopes, in a temporary folder, without network. Needs Python 3.10 and git. The
desk and `setup` are of the store that ACK_TEST_REAL_STORES names, and need tmux; else they stay as they are.
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

COLUMNS = 98
FONT = 14
CHARACTER = 8.43  # width of a character at this font size
LINE = 19
MARGIN = 18
BAR = 34  # height of the window's title bar
PATIENCE = 60  # seconds

CHANGED = "migrations/20250302_entry.sql"
QUERY = "container killed exit code 137"

STYLE = """
  .window { fill: #16181d; stroke: #3a3f4b }
  .chosen { fill: #d7dae0 }
  text { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d7dae0; white-space: pre }
  .bold { font-weight: 700; fill: #ffffff }
  .dim { fill: #8b93a3 }
  .underlined { text-decoration: underline }
  .red { fill: #f0938b }
  .green { fill: #8fce7b }
  .yellow, .prompt { fill: #e5b567 }
  .magenta { fill: #dba3e8 }
  .cyan { fill: #6fc3df }
  .reversed { fill: #16181d }
  @media (prefers-color-scheme: light) {
    .window { fill: #fbfbfa; stroke: #d0d4da }
    .chosen { fill: #24292f }
    text { fill: #24292f }
    .bold { fill: #000000 }
    .dim { fill: #6a727d }
    .red { fill: #b3261e }
    .green { fill: #1a7f37 }
    .yellow, .prompt { fill: #9a6700 }
    .magenta { fill: #8a2f7d }
    .cyan { fill: #0b6e8f }
    .reversed { fill: #fbfbfa }
  }
""" % FONT

CODES = {"1": "bold", "2": "dim", "4": "underlined", "7": "reversed"}
COLOURS = {"31": "red", "32": "green", "33": "yellow", "35": "magenta", "36": "cyan"}
CODES |= COLOURS
# What ends one style alone; every other code ends all of them.
ENDS = {"22": ["bold", "dim"], "24": ["underlined"], "27": ["reversed"], "39": COLOURS.values(), "49": []}


def run(arguments, folder, stdin=""):
    environment = {"HOME": folder, "PATH": os.environ["PATH"], "CLICOLOR_FORCE": "1"}
    done = subprocess.run(arguments, cwd=folder, env=environment, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout


def at_terminal(arguments, folder):
    """What a program prints to a person."""
    ours, theirs = pty.openpty()
    environment = {"HOME": folder, "PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "200"}
    program = subprocess.Popen(arguments, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    printed = b""
    try:
        while more := os.read(ours, 65536):
            printed += more
    except OSError:
        pass  # the end
    program.wait()
    return printed.decode().replace("\r\n", "\n")


class Screen:
    """A program on a screen of its own."""

    def __init__(self, arguments, folder, columns, rows):
        self.tmux = ["tmux", "-L", f"picture-{os.getpid()}", "-f", "/dev/null"]
        environment = ["env", "-i", f"HOME={folder}", f"PATH={os.environ['PATH']}", "TERM=xterm", "LANG=C.UTF-8"]
        size = ["-x", str(columns), "-y", str(rows)]
        subprocess.run([*self.tmux, "new-session", "-d", *size, "-c", folder, *environment, *arguments], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.tmux, "kill-server"])

    def press(self, *keys):
        for key in keys:
            subprocess.run([*self.tmux, "send-keys", key], check=True)
            time.sleep(0.5)

    def shown(self):
        """The rows, with escape sequences."""
        return subprocess.run([*self.tmux, "capture-pane", "-p", "-e"], check=True, capture_output=True, text=True).stdout

    def wait(self, text):
        since = time.monotonic()
        while text not in re.sub(r"\x1b\[[0-9;]*m", "", self.shown()):
            if time.monotonic() - since > PATIENCE:
                sys.exit(f"{text!r} never came:\n{self.shown()}")
            time.sleep(0.2)


def pieces(text):
    """Text with escape sequences as lines of (classes, text) pairs. Styles add up until they are reset."""
    styles, lines = [], [[]]
    for part in re.split(r"(\x1b\[[0-9;]*m|\x0f|\n)", text):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code:
            for number in code[1].split(";"):
                ended = ENDS.get(number, CODES.values())
                styles = [*styles, CODES[number]] if number in CODES else [it for it in styles if it not in ended]
        elif part == "\n":
            lines.append([])
        elif part.strip("\x0f"):
            lines[-1].append((" ".join(styles), part))
    return lines


def wrapped(line, columns):
    """The lines that a terminal makes of one, broken at blanks."""
    rows, row, width = [], [], 0
    indent = " " * len(re.match(r"(?:> )? *", "".join(text for _, text in line))[0])
    for style, text in line:
        for word in re.findall(r"\S+|\s+", text):
            if width + len(word) > columns and word.strip():
                rows.append(row)
                row, width = ([("", indent)], len(indent)) if indent else ([], 0)
            row.append((style, word))
            width += len(word)
    return [*rows, row]


def typed(command):
    return [[("prompt", "$ "), ("bold", command)]]


def said(text, upto=None, columns=COLUMNS):
    lines = pieces(text.rstrip("\n"))
    shown = lines if upto is None else lines[:upto]
    rows = [row for line in shown for row in wrapped(line, columns)]
    return rows if len(shown) == len(lines) else [*rows, [("dim", "…")]]


def sample_scopes(binary, folder):
    """The sample scopes, and a repository in which one file was edited."""
    root = f"{folder}/root"
    run([binary, "demo", root], folder)
    project = Path(folder, "ledger-api")
    changed = project / CHANGED
    changed.parent.mkdir(parents=True)
    changed.write_text("create table entry (id bigint primary key);\n")
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for step in [["init", "-q"], ["add", "."], ["commit", "-qm", "entry"]]:
        run([*git, *step], folder)
    changed.write_text(changed.read_text() + "alter table entry add column account_id bigint;\n")
    return [binary, "--root", root, "-C", str(project)]


def demo(ask, folder):
    answer = run([*ask, "query", QUERY, "-n", "1"], folder)
    answer = answer.split("\x1b[2mnext page")[0]
    start = at_terminal([*ask, "hook", "session-start"], folder)
    # The beginning, up to the end of the first memory.
    ends = [number for number, line in enumerate(start.split("\n"), 1) if line.startswith(">   id ")]
    rows = [
        *typed(f'ack-memory query "{QUERY}" -n 1'),
        *said(answer),
        [],
        *typed("ack-memory hook session-start"),
        [("dim", f"# what a session in ledger-api gets while {CHANGED} is edited")],
        *said(start, upto=ends[0]),
    ]
    return svg("A query with its answer, and what a session begins with", [(rows, COLUMNS, "")])


def failure(ask, folder):
    """What an agent reads after a command failed, without and with what the hook adds."""
    columns = 56
    error = "api exited with code 137"
    event = {"hook_event_name": "PostToolUseFailure", "session_id": "s", "cwd": folder, "tool_name": "Bash"}
    event |= {"tool_input": {"command": "docker compose stop api"}, "error": error}
    hook = json.loads(run([*ask, "hook", "tool-failure", "--client", "claude-code"], folder, json.dumps(event)))
    added = hook["hookSpecificOutput"]["additionalContext"]
    failed = [[("green", "● "), ("bold", "Bash"), ("", "(docker compose stop api)")], [("dim", "  └ "), ("red", error)]]
    label = "The command is an illustration; what the hook adds is what the program printed."
    nothing = [[], [("dim", "  Nothing else arrives.")]]
    hooked = [[], [("dim", "  The hook of ack-memory adds:")], *said(added.split("\n\nThe tool")[0], columns=columns)]
    windows = [([*failed, *nothing], columns, "Claude Code alone"), ([*failed, *hooked], columns, "Claude Code with ack-memory")]
    return svg("What an agent reads after a command failed, without and with ack-memory", windows, label)


def desk(binary, folder, store):
    root = Path(folder, "scopes", "claude-mem")
    root.mkdir(parents=True)
    shutil.copy(store, root)
    Path(root, "scope.toml").write_text(f'store = "{store.name}"\n')
    with Screen([binary, "--root", folder, "review", "--tty"], folder, 100, 30) as screen:
        screen.wait("missed")
        screen.press("j", "j", "j", "Enter", "a", "2", "a", "a", "s", "a")
        screen.wait("Session start")
        rows = pieces(screen.shown().rstrip("\n"))
    return svg("The desk in a terminal of 100 columns and 30 rows", [(rows, 100, "ack-memory review --tty")])


def setup(binary, folder, store):
    mem, claude = Path(folder, ".claude-mem"), Path(folder, ".claude")
    mem.mkdir()
    claude.mkdir()
    shutil.copy(store, mem)
    command = {"type": "command", "command": "npx claude-mem hook context"}
    settings = json.dumps({"hooks": {"SessionStart": [{"hooks": [command]}]}}, indent=2)
    Path(claude, "settings.json").write_text(f"{settings}\n")
    with Screen([binary, "setup"], folder, 90, 40) as screen:
        screen.wait("[t/r/s")
        screen.press("t", "Enter")
        screen.wait("[y/N")
        rows = pieces(screen.shown().rstrip("\n").replace(folder, "/home/ana"))
    return svg("Setup asks what agents may see", [([*typed("ack-memory setup"), *rows], 90, "")])


def svg(title, windows, label=""):
    """Windows side by side: rows, columns and a name of each."""
    height = BAR + max(len(rows) for rows, *_ in windows) * LINE + MARGIN
    out, x = [], 0
    for rows, columns, name in windows:
        width = round(columns * CHARACTER + 2 * MARGIN)
        out += window(rows, name, x, width, height)
        x += width + MARGIN
    width, below = x - MARGIN, 2 * LINE if label else 0
    size = f'viewBox="0 0 {width} {height + below}" width="{width}" height="{height + below}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{title}</title>", f"<style>{STYLE}</style>"]
    foot = [f'<text class="dim" x="{MARGIN}" y="{height + LINE}">{label}</text>'] if label else []
    return "\n".join([*head, *out, *foot, "</svg>"]) + "\n"


def window(rows, name, left, width, height):
    out = [f'<rect class="window" x="{left + 0.5}" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>']
    for number, colour in enumerate(["#ec6a5e", "#f4bf4f", "#61c554"]):
        out.append(f'<circle cx="{left + MARGIN + 5 + 18 * number}" cy="17" r="5.5" fill="{colour}"/>')
    if name:
        out.append(f'<text class="dim" x="{left + MARGIN + 62}" y="22">{name}</text>')
    for number, row in enumerate(rows):
        column, y = 0, BAR + (number + 1) * LINE - 5
        for style, text in merged(row):
            start = left + MARGIN + column * CHARACTER
            if "reversed" in style:
                out.append(f'<rect class="chosen" x="{start:.1f}" y="{y - 14}" width="{len(text) * CHARACTER:.1f}" height="{LINE}"/>')
            if text.strip():
                x = start + (len(text) - len(text.lstrip())) * CHARACTER
                length = len(text.strip()) * CHARACTER
                name = f' class="{style}"' if style else ""
                out.append(
                    f'<text{name} xml:space="preserve" x="{x:.1f}" y="{y}" textLength="{length:.1f}" lengthAdjust="spacing">{escape(text.strip())}</text>'
                )
            column += len(text)
    return out


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
    assets = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        ask = sample_scopes(binary, folder)
        pictures = {"demo.svg": demo(ask, folder), "failure.svg": failure(ask, folder)}
    samples = os.environ.get("ACK_TEST_REAL_STORES")
    if words == sys.argv[1:] and samples and shutil.which("tmux"):
        store = Path(samples, "claude-mem", "claude-mem.db")
        for name, make in {"desk.svg": desk, "setup.svg": setup}.items():
            with tempfile.TemporaryDirectory() as folder:
                pictures[name] = make(binary, folder, store)
    for name, picture in pictures.items():
        file = assets / name
        if words == sys.argv[1:]:
            file.write_text(picture)
        elif file.read_text() != picture:
            sys.exit(f"{file} is out of date: run {__file__} {words[0]}")


main()
