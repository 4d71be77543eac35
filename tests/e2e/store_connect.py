"""Connections to a store: permanent refusals are reported at once, temporary ones are waited for, and TLS and passwords
follow libpq's rules."""
import subprocess

from harness import BUILD, main, test, wait_until
from postgres_server import Server, fresh
from store_fixture import made, same_run

SPANNER = BUILD / "tests/fakes/spanner"


def push(workdir, url, status=0, wait="1h", **how):
    """With a limit of an hour: a failure that is not reported at once does not end."""
    done = workdir.wattle("push", "--wait", wait, "run.sqlite", url, **how)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def told(done, *words):
    """In one line."""
    line, = done.stderr.splitlines()
    assert all(word in line for word in words), done.stderr


@test
def refused(workdir):
    """invalid files, URLs and servers: one line with the error and the remedy; no password in it"""
    made(workdir, "short")
    for words, status, named in (
            (["run.sqlite"], 2, "URL"),
            (["run.sqlite", "mysql://host/db"], 2, "postgresql://"),
            (["run.sqlite", "postgresql://u:secret@host/db"], 2, "~/.pgpass"),
            (["run.sqlite", "postgresql://u@host/db?password=secret"], 2, "~/.pgpass"),
            (["run.sqlite", "postgresql://u:a?secret@/db?host=/nowhere"], 2, "~/.pgpass"),  # libpq takes these, too
            (["run.sqlite", "postgresql://u:a#secret@/db?host=/nowhere"], 2, "~/.pgpass"),
            (["run.sqlite", "postgresql://u:secret/a@host/db"], 2, "~/.pgpass"),
            (["run.sqlite", "postgresql://u@host/db?pass%77ord=secret"], 2, "~/.pgpass"),
            (["run.sqlite", "postgresql://[::1]:1,127.0.0.1:1/db?user=a@b"], 1, "refused"),
            (["no.sqlite", "postgresql:///db?host=/nowhere"], 1, "no.sqlite"),
            (["run.sqlite", "postgresql:///db?host=/nowhere"], 1, "/nowhere"),
            (["run.sqlite", "postgresql:///db?nonsense=1"], 1, "nonsense")):
        done = workdir.wattle("push", "--wait", "0s", *words)
        lines = done.stderr.splitlines()
        assert done.returncode == status and named in lines[0] and "secret" not in done.stderr, (words, done)
        assert len(lines) == 1 or status == 2, (words, done.stderr)


@test
def silent_server(workdir):
    """server that accepts the connection and does not answer: treated as missing"""
    with fresh() as server:
        made(workdir, "short")
        server.pause()
        try:
            done = workdir.wattle("push", "--wait", "0s", "run.sqlite", server.url() + "&connect_timeout=2")
            assert done.returncode == 1 and "timeout expired" in done.stderr, done
            done = workdir.wattle("push", "--wait", "0s", "run.sqlite", server.url(), env={"PGCONNECT_TIMEOUT": "2"})
            assert done.returncode == 1 and "timeout expired" in done.stderr, done
        finally:
            server.pause(on=False)
        push(workdir, server.url())


@test
def passwords(workdir):
    """password from PGPASSWORD or a password file, by libpq's rules; a missing or wrong one is reported at once"""
    with Server(auth="scram-sha-256") as server:
        server.run("CREATE ROLE guest LOGIN PASSWORD 'open sesame'; GRANT CREATE ON SCHEMA public TO guest")
        made(workdir, "short")
        url = server.url(user="guest")
        told(push(workdir, url, status=1), "no password", "~/.pgpass")
        told(push(workdir, url, status=1, env={"PGPASSWORD": "wrong"}),
             'password authentication failed for user "guest"')
        push(workdir, url, env={"PGPASSWORD": "open sesame"})
        secrets = workdir.folder / "pgpass"
        secrets.write_text("*:*:*:guest:open sesame\n")
        secrets.chmod(0o600)
        assert "is already complete" in push(workdir, url, env={"PGPASSFILE": str(secrets)}).stdout
        same_run(server, workdir.folder / "run.sqlite")


@test
def refused_by_server(workdir):
    """missing role or database: permanent, for push and for a recorder whose command has ended"""
    with Server() as server:
        made(workdir, "short")
        told(push(workdir, server.url(user="nobody"), status=1), 'role "nobody" does not exist')
        told(push(workdir, server.url(database="nothing"), status=1), 'database "nothing" does not exist')
        done = workdir.wattle("run", "-q", "--store-wait", "1h", "--store", server.url(database="nothing"), "-o",
                              "other.sqlite",
                              "--", SPANNER, "nested")
        assert done.returncode == 0 and "wattle push other.sqlite" in done.stderr, done


@test
def comes_later(workdir):
    """server without a free connection: waited for"""
    with Server(log_statement="all") as server:
        server.run("CREATE ROLE guest LOGIN CONNECTION LIMIT 0; GRANT CREATE ON SCHEMA public TO guest")
        made(workdir, "short")
        told(push(workdir, server.url(user="guest"), status=1, wait="0s"), "too many connections")
        pushing = workdir.start("push", "--wait", "1h", "run.sqlite", server.url(user="guest"))
        wait_until(lambda: server.log.read_text().count("too many connections") > 4, "a second try")
        assert pushing.poll() is None
        server.run("ALTER ROLE guest CONNECTION LIMIT 9")
        done = workdir.finish(pushing)
        assert done.returncode == 0, done.stderr
        same_run(server, workdir.folder / "run.sqlite")
        # A statement that waits for a table gives up before wattle does, after a minute, and does not stay at the
        # server.
        assert "SET lock_timeout = '45s'" in server.log.read_text()


def openssl(folder, *words):
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                           "-nodes", "-days", "2",
                           *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def certificates(folder):
    """Two certificate authorities, and a server's certificate of the first, for localhost only."""
    for name in ("authority", "stranger"):
        openssl(folder, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
    openssl(folder, "-CA", "authority.crt", "-CAkey", "authority.key", "-subj", "/CN=server", "-addext",
            "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.crt")


@test
def tls(workdir):
    """verify-full: a server with the right authority and name is accepted; another authority, another name, and no TLS
    are refused at once"""
    certificates(workdir.folder)
    with Server(tcp=True, host="hostssl", auth="scram-sha-256") as server:
        server.run("CREATE ROLE guest LOGIN PASSWORD 'open sesame'; GRANT CREATE ON SCHEMA public TO guest")
        server.take_certificate(workdir.folder / "server.crt", workdir.folder / "server.key")
        made(workdir, "short")
        env = {"PGPASSWORD": "open sesame"}

        def url(host="localhost", mode="verify-full", authority="authority"):
            return f"postgresql://guest@{host}:{server.port}/wattle?sslmode={mode}&sslrootcert={workdir.folder}/{authority}.crt"

        told(push(workdir, url(authority="stranger"), status=1, env=env), "certificate verify failed")
        told(push(workdir, url(host="127.0.0.1"), status=1, env=env), "127.0.0.1", "does not match")
        told(push(workdir, url(authority="nobody"), status=1, env=env), "nobody.crt", "does not exist")
        told(push(workdir, url(mode="disable"), status=1, env=env), "no encryption")
        push(workdir, url(), env=env)
        same_run(server, workdir.folder / "run.sqlite")
        recording = workdir.start("run", "-q", "--store", url(), "--", SPANNER, "nested", env=env)
        done = workdir.finish(recording)
        assert done.returncode == 0 and not done.stderr, done
        assert server.value("SELECT count(*) FROM recording WHERE complete") == 2


if __name__ == "__main__":
    main()
