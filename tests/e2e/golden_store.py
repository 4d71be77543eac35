"""A PostgreSQL store with runs of tests/golden, for golden.py: its tables, and the output of the commands that read
it."""
import json
import re

from postgres_server import Server

PUSHED = ("full.sqlite", "segments.sqlite", "nulls.sqlite", *(f"takeover/job-r00{rank}.sqlite" for rank in range(4)))
ROWS = 3  # of a table
NEW = {"last_rows_unix_s", "clock_offset_s", "changed"}  # time of the upload
OUTPUTS = tuple(f"store/{name}" for name in ("tables.txt", "status.json", "list.txt", "list.json",
                                             "report.json", "job.txt", "job.json",
                                             "compare.json"))


def tables(server):
    """Columns and types of each table and view, and the first rows of all but those of one day each."""
    out = []
    names = [row[0] for row in server.rows(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND "
                                           "relkind IN ('r', 'p', 'v') AND NOT relispartition ORDER BY relname")]
    for name in names:
        columns = server.rows(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = "
            f"'{name}'::regclass "
                              "AND attnum > 0 AND NOT attisdropped ORDER BY attnum")
        out.append(f"table {name}: {', '.join(' '.join(column) for column in columns)}")
        shown = ", ".join(f'"{column}"::text' for column, _ in columns if column not in NEW)
        rows = server.rows(f"SELECT {shown} FROM {name}")
        out.append(f"  {len(rows)} rows")
        out += (f"  {row}" for row in sorted(rows, key=str)[:ROWS])
    return "\n".join(out) + "\n"


def without_times(value):
    if isinstance(value, dict):
        return {key: "TIME" if key in NEW else "SIZE" if "bytes" in key or key == "rows_about" else without_times(inner)
                for key, inner in value.items()}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def stored(workdir, workdir_of_runs, environment):
    """All outputs, from one server; `workdir_of_runs` has the run files."""
    with Server() as server:
        def wattle(*words):
            done = workdir.wattle(*words, env={**environment, "PGTZ": "UTC"}, cwd=workdir_of_runs.folder)
            assert done.returncode == 0, (words, done.stderr)
            return re.sub(r"postgresql://\S+", "URL", done.stdout.replace(str(server.folder), "SOCKET"))
        wattle("store", "init", server.url())
        for path in PUSHED:
            wattle("push", "-q", path, server.url())
        url = ("--store", server.url())
        status = without_times(json.loads(wattle("store", "status", server.url(), "--json")))
        status.update(server_version="VERSION", tables=sorted(status["tables"], key=lambda row: row["table"]))
        texts = (tables(server), json.dumps(status, indent=1) + "\n", wattle("list", *url),
                 wattle("list", *url, "--json"),
                 wattle("report", *url, "--run", run_id(server), "--format", "json"),
                 wattle("report", *url, "--job", "4242"), wattle("report", *url, "--job", "4242", "--format", "json"),
                 wattle("compare", *url, "a=4242", "b=4242", "--format", "json"))
        return dict(zip(OUTPUTS, texts))


def run_id(server):
    """Of the run with several recordings."""
    return server.value("SELECT run_id::text FROM recording WHERE segments > 1")
