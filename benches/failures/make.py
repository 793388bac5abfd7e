#!/usr/bin/env python3
"""Runs real tools so that they fail, and records what they print.

    make.py prepare          users, shared installs, a PostgreSQL server (as root, in a container)
    make.py run [ID...]      runs the cases that errors.jsonl lacks, or the named ones again
    make.py check            counts, and whether every case and memory has its partner
    make.py clean            stops the server and undoes the mounts

The cases are in `cases/*.txt`, the memories in `cases/memories-*.jsonl`, where they have names. A
case:

    === id | tool | folder | options
    >>> path of a file, followed by its content
    !!! (or !!!root) a script that prepares the folder, as `dev` or as root
    $$$ the command, as somebody would type it

Options: `m=ID` (the memory that explains it), `node` and `venv` (shared installs), `t=SECONDS`,
`LANG=...`, other `NAME=value` pairs for the environment.
"""

import hashlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ERRORS = HERE / "errors.jsonl"
HOME = pathlib.Path("/home/dev")
OWN_HOME = pathlib.Path.home()
SHARED = pathlib.Path("/opt/failures")
LONGEST = 6000
TOOLS = f"{HOME}/.cargo/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
HOSTS = "127.0.0.1 git.corp.internal pypi.corp.internal api.staging.internal db.staging.internal # failures"
NODE = (
    "typescript@5.6 eslint@9 @eslint/js@9 typescript-eslint@8 jest@29 vitest@2 prettier express "
    "react@18 react-dom@18 @types/node@20 @types/react@18 @types/express ts-node mocha webpack@4 "
    "webpack-cli@4 jsdom"
)
PYTHON = (
    "pytest pytest-xdist pytest-asyncio pytest-timeout requests pydantic sqlalchemy "
    "psycopg2-binary django alembic numpy pandas mypy ruff black flake8 fastapi httpx uvicorn "
    "celery redis pip-tools setuptools pre-commit tox"
)
PRELUDE = r"""
repo() { git init -q -b main; git config user.name Dana; git config user.email dana@example.com;
         git add -A; git commit -qm "${1:-Import}" >/dev/null; }
tls() { # a server with a certificate of its own: tls PORT [DAYS] [NAME]
  openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/tls.key -out /tmp/tls.crt -days 365 \
    -subj "/CN=${2:-api.staging.internal}" -addext "subjectAltName=DNS:${2:-api.staging.internal}" 2>/dev/null
  openssl s_server -quiet -accept "$1" -key /tmp/tls.key -cert /tmp/tls.crt -www >/dev/null 2>&1 &
  sleep 0.7; }
sql() { psql -q -h localhost -U postgres -v ON_ERROR_STOP=1 "$@" >/dev/null 2>&1; }
freshdb() { sql -c "drop database if exists $1 with (force)" postgres; sql -c "create database $1" postgres; }
"""


def cases():
    """Every case, in the order of the files."""
    found, ids = [], set()
    for path in sorted((HERE / "cases").glob("*.txt")):
        case = part = None
        for line in path.read_text().split("\n"):
            if line.startswith("=== "):
                words = [word.strip() for word in line[4:].split("|")]
                assert len(words) in (3, 4), line
                assert words[0] not in ids, line
                ids.add(words[0])
                case = {"id": words[0], "tool": words[1], "folder": words[2], "files": {}, "setup": [],
                        "command": [], "options": (words[3].split() if len(words) > 3 else [])}
                found.append(case)
                part = None
            elif line.startswith(">>> "):
                part = case["files"].setdefault(line[4:].strip(), [])
            elif line.startswith("!!!"):
                part = []
                case["setup"].append(("root" if line[3:].strip() == "root" else "dev", part))
            elif line.startswith("$$$ "):
                case["command"].append(line[4:])
                part = None
            elif part is not None:
                part.append(line)
    return found


def environment(case, user):
    env = {name: value for name, value in os.environ.items() if "CERT" in name or "CA_BUNDLE" in name or "SSL_CAINFO" in name}
    env |= {"HOME": str(HOME), "USER": "dev", "LOGNAME": "dev", "PATH": TOOLS, "LANG": "C.UTF-8",
            "RUSTUP_HOME": f"{HOME}/.rustup",
            "LD_LIBRARY_PATH": ":".join(str(path) for path in sorted(HOME.glob(".pyenv/versions/*/lib"))), "RUSTUP_TOOLCHAIN": "stable", "SHELL": "/bin/bash",
            "NPM_CONFIG_UPDATE_NOTIFIER": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TERM": "dumb"}
    folder = HOME / case["folder"]
    if user == "root":
        env |= {"HOME": str(OWN_HOME), "USER": "root", "LOGNAME": "root"}
    for option in case["options"]:
        if option == "venv":
            env["PATH"] = f"{folder}/.venv/bin:{env['PATH']}"
            env["VIRTUAL_ENV"] = f"{folder}/.venv"
        elif "=" in option and not option.startswith(("m=", "t=")):
            name, value = option.split("=", 1)
            env[name] = value
    return env


def bash(script, case, user, limit, folder):
    """Runs a script; its exit code and all that it printed."""
    who = pwd.getpwnam(user)
    arguments = {} if user == "root" else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
    process = subprocess.Popen(["/bin/bash", "-c", script], cwd=folder, env=environment(case, user), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, **arguments)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        print(f"  {case['id']}: cut off after {limit} s", file=sys.stderr)
    return process, output.decode("utf-8", "replace")


def run(case):
    folder = HOME / case["folder"]
    assert HOME in folder.parents
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, lines in case["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines).rstrip("\n") + "\n")
    if "node" in case["options"]:
        subprocess.run(["cp", "-al", SHARED / "node_modules", folder / "node_modules"], check=True)
    if "venv" in case["options"]:
        (folder / ".venv").symlink_to(SHARED / "venv")
    subprocess.run(["chown", "-Rh", "dev:dev", "--from=root", folder] if "node" not in case["options"] else
                   ["find", folder, "-path", folder / "node_modules", "-prune", "-o", "-exec", "chown", "-h", "dev:dev", "{}", "+"], check=True)
    if "node" in case["options"]:
        shutil.chown(folder / "node_modules", "dev", "dev")
    limit = next((int(word[2:]) for word in case["options"] if word.startswith("t=")), 90)
    groups = []
    try:
        for user, lines in case["setup"]:
            quiet = PRELUDE + "\n".join(lines)
            log = open("/tmp/failures-setup.log", "ab")
            who = pwd.getpwnam(user)
            arguments = {} if user == "root" else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
            process = subprocess.Popen(["/bin/bash", "-c", quiet], cwd=folder, env=environment(case, user), stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, start_new_session=True, **arguments)
            groups.append(process.pid)
            process.wait(timeout=180)
        user = "root" if "root" in case["options"] else "dev"
        process, output = bash("\n".join(case["command"]), case, user, limit, folder)
    finally:
        for group in groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass
        teardown = folder / ".teardown"
        if teardown.exists():
            subprocess.run(["bash", teardown], cwd="/", capture_output=True)
    subprocess.run(["chattr", "-R", "-i", folder], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
    output = output.replace(str(SHARED / "venv"), f"{folder}/.venv")
    if len(output) > LONGEST:
        left_out = len(output) - LONGEST
        output = f"{output[:2500]}\n... [{left_out} characters truncated] ...\n{output[-(LONGEST - 2500):]}"
    return {"id": case["id"], "tool": case["tool"], "command": "\n".join(case["command"]),
            "exit_code": process.returncode if process.returncode >= 0 else 128 - process.returncode, "output": output}


def read(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []


def write(records):
    """Adds what is not recorded but decided: the memory and the half."""
    lines = []
    for case in cases():
        record = records.get(case["id"])
        if record is None:
            continue
        name = next((word[2:] for word in case["options"] if word.startswith("m=")), None)
        record["memory"] = name and public(name)
        seed = f"7 {record['memory'] or record['id']}"
        record["split"] = "dev" if hashlib.sha256(seed.encode()).digest()[0] % 2 else "test"
        lines.append(json.dumps(record, ensure_ascii=False))
    ERRORS.write_text("\n".join(lines) + "\n")
    write_memories()


def public(name):
    """The id of a memory: an id that tells nothing."""
    return "obs-" + str(int(hashlib.sha256(name.encode()).hexdigest(), 16) % 900_000 + 100_000)


def write_memories():
    keys = ("project", "date", "type", "title", "subtitle", "facts", "concepts", "narrative")
    lines = []
    for path in sorted((HERE / "cases").glob("memories*.jsonl")):
        for memory in read(path):
            number = int(public(memory["id"])[4:])
            memory["date"] = f"2026-{number % 8 + 1:02}-{number % 28 + 1:02}"
            row = {"id": public(memory["id"])} | {key: memory[key] for key in keys if key in memory}
            lines.append(row | {"status": "approved"})
    lines.sort(key=lambda row: row["id"])
    assert len({row["id"] for row in lines}) == len(lines)
    (HERE / "memories.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in lines))


def run_all(names):
    records = {record["id"]: record for record in read(ERRORS)}
    for case in cases():
        if case["id"] in names or (not names and case["id"] not in records):
            try:
                record = run(case)
            except Exception as error:
                print(f"  {case['id']}: {error!r}", file=sys.stderr)
                continue
            if record["exit_code"] == 0:
                print(f"  {case['id']}: did not fail: {record['output'][-200:]!r}", file=sys.stderr)
                continue
            records[case["id"]] = record
            write(records)
    write(records)


def check():
    errors = read(ERRORS)
    known = {memory["id"] for path in (HERE / "cases").glob("memories*.jsonl") for memory in read(path)}
    used = {word[2:] for case in cases() for word in case["options"] if word.startswith("m=")}
    recorded = {error["id"] for error in errors}
    print("memories that no error has:", sorted(known - used))
    print("memories that are not written:", sorted(used - known))
    print("cases without a record:", [case["id"] for case in cases() if case["id"] not in recorded])
    tools = {}
    for error in errors:
        entry = tools.setdefault(error["tool"], [0, 0])
        entry[error["memory"] is None] += 1
    for tool, (having, lacking) in sorted(tools.items()):
        print(f"{tool:14} {having:4} {lacking:4}")
    for half in ("dev", "test"):
        part = [error for error in errors if error["split"] == half]
        print(half, len(part), "with a memory:", sum(error["memory"] is not None for error in part))
    print(len(errors), "errors,", sum(error["memory"] is not None for error in errors), "with one of", len(known), "memories,",
          ERRORS.stat().st_size // 1000, "kB")


def prepare():
    def shell(script):
        subprocess.run(["bash", "-ec", script], check=True)

    shell(f"id dev >/dev/null 2>&1 || useradd -m -u 1500 -s /bin/bash dev; mkdir -p {SHARED} {HOME}/.cargo/bin {HOME}/.rustup {HOME}/.pyenv")
    for name in (".cargo/bin", ".rustup", ".pyenv"):
        if (OWN_HOME / name).exists() and not os.path.ismount(HOME / name):
            shell(f"mount --bind -o ro {OWN_HOME}/{name} {HOME}/{name}")
    shell(f"chown dev:dev {HOME}/.cargo; grep -q '# failures' /etc/hosts || echo '{HOSTS}' >> /etc/hosts")
    if not (SHARED / "venv").exists():
        shell(f"{sys.executable} -m venv {SHARED}/venv && {SHARED}/venv/bin/pip install -q {PYTHON}")
    if not (SHARED / "node_modules").exists():
        shell(f"cd {SHARED} && npm init -y >/dev/null && npm i --legacy-peer-deps {NODE}")
    if not pathlib.Path("/tmp/failures-pg").exists():
        shell("""
          mkdir -p /tmp/failures-pg /var/run/postgresql; chown postgres /tmp/failures-pg /var/run/postgresql
          as() { setpriv --reuid=postgres --regid=postgres --clear-groups env -i PATH=/usr/lib/postgresql/15/bin:/usr/bin LANG=C.UTF-8 "$@"; }
          as initdb -D /tmp/failures-pg -A trust --locale=C.UTF-8 >/dev/null
          printf 'local all postgres trust\\nlocal all all peer\\nhost all postgres 127.0.0.1/32 trust\\nhost all postgres ::1/128 trust\\nhost all app 127.0.0.1/32 scram-sha-256\\nhost all app ::1/128 scram-sha-256\\n' > /tmp/failures-pg/pg_hba.conf
          as pg_ctl -D /tmp/failures-pg -o "-c max_connections=30 -c listen_addresses=localhost" -l /tmp/failures-pg/log -w start >/dev/null
          as psql -q -h localhost -U postgres -c "create role app login password 'secret'"
        """)


def clean():
    subprocess.run(["bash", "-c", f"""
      setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/pg_ctl -D /tmp/failures-pg -m fast stop
      rm -rf /tmp/failures-pg; umount {HOME}/.cargo/bin {HOME}/.rustup {HOME}/.pyenv
      sed '/# failures/d' /etc/hosts > /tmp/hosts.new && cat /tmp/hosts.new > /etc/hosts"""])


if __name__ == "__main__":
    what, names = sys.argv[1] if len(sys.argv) > 1 else "check", sys.argv[2:]
    {"prepare": prepare, "check": check, "clean": clean}.get(what, lambda: run_all(names))()
