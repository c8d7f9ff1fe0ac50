#!/usr/bin/env python3
"""Real software, unmodified, on kumi-server and on redis-server: tests/software/run.py [NAME ...]

Installs pinned packages from package-lock.json, Cargo.lock and the requirements files into a folder under target/, runs
each program against both servers, and fails if a program fails or the two servers make it print different lines. Needs
node, npm, cargo, python3 with venv, openssl, redis-server, and a built kumi-server: target/debug/kumi-server, or what
KUMI_SERVER names.
"""

import functools
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")).resolve()
CACHE = TARGET / "software"
KUMI_SERVER = pathlib.Path(os.environ.get("KUMI_SERVER", TARGET / "debug" / "kumi-server"))
# How long one program may take on one server, in seconds.
LIMIT_S = 90

# Name, the folder, the file (of Rust: the program's argument), and the environment it runs in.
PROGRAMS = [
    ("BullMQ", "node", "bullmq.mjs", "node"),
    ("ioredis", "node", "ioredis.mjs", "node"),
    ("node-redis", "node", "node_redis.mjs", "node"),
    ("connect-redis", "node", "session.mjs", "node"),
    ("rate-limiter-flexible", "node", "rate_limiter.mjs", "node"),
    ("redlock", "node", "redlock.mjs", "node"),
    ("Socket.IO", "node", "socketio.mjs", "node"),
    ("redis-py", "python", "redis_sync.py", "python"),
    ("redis-py-asyncio", "python", "redis_asyncio.py", "python"),
    ("Celery", "python", "celery_app.py", "python"),
    ("RQ", "python", "rq_jobs.py", "python"),
    ("Dramatiq", "python", "dramatiq_app.py", "python"),
    ("Huey", "python", "huey_app.py", "python"),
    ("django-redis", "python", "django_cache.py", "python"),
    ("arq", "python", "arq_app.py", "arq"),
    ("redis-rs", "rust", "redis", "rust"),
    ("fred", "rust", "fred", "rust"),
    ("bb8", "rust", "bb8", "rust"),
    ("deadpool", "rust", "deadpool", "rust"),
    ("ioredis-tls", "node", "ioredis.mjs", "node"),
    ("redis-py-tls", "python", "redis_sync.py", "python"),
]
# Programs whose name ends so reach the servers by TLS.
TLS = "-tls"


def install(name, sources, build):
    """Builds an environment in a folder named after the contents of its lock files, unless it is there."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        build(folder)
        (folder / "complete").touch()
    return folder


def build_node(folder):
    for name in ["package.json", "package-lock.json"]:
        shutil.copy(HERE / "node" / name, folder)
    # In the versions of the lock file. `npm ci` would want entries for the native parts of every platform.
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
    subprocess.run(command, cwd=folder, check=True)


def build_venv(requirements):
    def build(folder):
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip = [folder / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "-r", requirements], check=True)

    return build


def build_rust(folder):
    """Cargo decides itself what has to be built again, so this folder is not named after its sources."""
    command = ["cargo", "build", "--quiet", "--locked", "--target-dir", str(folder)]
    subprocess.run(command, cwd=HERE / "rust", check=True)
    return folder


@functools.cache
def environment(name):
    if name == "rust":
        return build_rust(CACHE / "rust")
    if name == "node":
        sources = [HERE / "node" / "package.json", HERE / "node" / "package-lock.json"]
        return install("node", sources, build_node)
    file = {"python": "requirements.txt", "arq": "requirements-arq.txt"}[name]
    requirements = HERE / "python" / file
    return install(name, [requirements], build_venv(requirements))


def prepare(program, folder, work):
    """The command of a program. Node looks for packages beside the file, so the programs are copied there."""
    _, language, file, _ = program
    if language == "node":
        for source in (HERE / "node").glob("*.mjs"):
            shutil.copy(source, folder)
        return ["node", str(folder / file)], str(folder)
    if language == "rust":
        return [str(folder / "debug" / "kumi-software"), file], str(work)
    return [str(folder / "venv" / "bin" / "python"), str(HERE / "python" / file)], str(work)


def certificate(work):
    """A certificate for localhost that signs itself, and its key."""
    files = [work / "certificate.pem", work / "key.pem"]
    if not files[0].exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-out", files[0], "-keyout", files[1]],
                       check=True, capture_output=True)
    return files


class Server:
    """A server on a free port of the loopback interface, with an empty folder of its own."""

    def __init__(self, binary, folder, tls=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folder.mkdir()
        self.log = folder / "log"
        flags = ["--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        flags += ["--port", "0", "--tls-port", str(self.port)] if tls else ["--port", str(self.port)]
        if tls:
            flags += ["--tls-cert-file", str(tls[0]), "--tls-key-file", str(tls[1]), "--tls-ca-cert-file", str(tls[0]),
                      "--tls-auth-clients", "no"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(binary), *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.url = f"rediss://localhost:{self.port}/0" if tls else f"redis://127.0.0.1:{self.port}/0"
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{binary} does not start:\n{self.log.read_text(errors='replace')}")

    def stop(self):
        alive = self.process.poll() is None
        self.process.terminate()
        self.process.wait(20)
        return alive


def run(program, work):
    """Runs a program on both servers at once. Returns whether all is well."""
    name = program[0]
    command, directory = prepare(program, environment(program[3]), work)
    tls = certificate(work) if name.endswith(TLS) else None
    servers = {}
    runs = {}
    started = time.monotonic()
    try:
        for side, binary in [("kumi", KUMI_SERVER), ("redis", "redis-server")]:
            server = servers[side] = Server(binary, work / f"{name}-{side}", tls)
            env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NODE_NO_WARNINGS": "1"}
            if tls:
                # Where node and Python's ssl look for authorities.
                env.update(NODE_EXTRA_CA_CERTS=str(tls[0]), SSL_CERT_FILE=str(tls[0]))
            runs[side] = subprocess.Popen([*command, server.url], cwd=directory, env=env, text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines, problems = {}, []
        for side, process in runs.items():
            try:
                out, err = process.communicate(timeout=max(1, LIMIT_S - (time.monotonic() - started)))
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                problems.append(f"{side}: no end after {LIMIT_S} s")
            lines[side] = out.strip().splitlines()[-1:] if out.strip() else []
            if process.returncode != 0 or not lines[side]:
                problems.append(f"{side}: exit {process.returncode}\n{out[-2000:]}{err[-4000:]}")
        if not problems and lines["kumi"] != lines["redis"]:
            problems.append(f"different lines:\nkumi:  {lines['kumi'][0]}\nredis: {lines['redis'][0]}")
    finally:
        for process in runs.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        ended = {side: server.stop() for side, server in servers.items()}
    if not ended.get("kumi", False):
        problems.append(f"kumi-server ended by itself:\n{servers['kumi'].log.read_text(errors='replace')[-3000:]}")
    seconds = time.monotonic() - started
    print(f"{'FAILED' if problems else 'same on both':12}  {name}  ({seconds:.1f} s)", flush=True)
    for problem in problems:
        print("    " + problem.replace("\n", "\n    "), flush=True)
    return not problems


def main():
    if not KUMI_SERVER.exists():
        sys.exit(f"run.py: there is no {KUMI_SERVER}; build it first: cargo build -p kumi-server")
    wanted = [program for program in PROGRAMS if len(sys.argv) < 2 or program[0] in sys.argv[1:]]
    for name in dict.fromkeys(program[3] for program in wanted):
        environment(name)
    with tempfile.TemporaryDirectory() as work:
        failed = [program[0] for program in wanted if not run(program, pathlib.Path(work))]
    if failed:
        sys.exit(f"run.py: {len(failed)} of {len(wanted)} programs failed: {', '.join(failed)}")
    print(f"{len(wanted)} programs did the same on kumi-server and on redis-server.")


main()
