"""Run files of any size, made from a short real one: 100 ms between samples, one package, spans in a loop."""
import shutil
import sqlite3

STEP_NS = 100_000_000
NAMES = ["epoch", "load", "decode", "augment", "forward", "loss", "backward", "step", "log", "sync"]


def lengthen(path, samples):
    """Replaces the samples of a run by many, with all counters growing evenly."""
    file = sqlite3.connect(path)
    start, = file.execute("select start_ns from segment").fetchone()
    devices = [number for number, in file.execute("select id from device")]
    file.execute("delete from sample")
    file.execute("delete from device_sample")
    file.executemany(
        "insert into sample (t_ns, self_cpu_ns, system_cpu_busy_ns, system_cpu_idle_ns, main_cpu_ns, "
        "descendants_cpu_ns, "
        "main_rss_bytes, descendants_rss_bytes, system_memory_bytes, main_threads, descendants_threads) "
        "values (?, ?, ?, ?, ?, 0, 1000000, 0, 2000000, 2, 0)",
        ((start + i * STEP_NS, i * 100_000, i * STEP_NS, i * STEP_NS, i * STEP_NS // 2) for i in range(samples)))
    file.executemany("insert into device_sample (t_ns, device, energy_uj) values (?, ?, ?)",
                     ((start + i * STEP_NS, device, i * 5_000_000) for i in range(samples) for device in devices))
    file.execute("update segment set end_ns = ?", (start + (samples - 1) * STEP_NS,))
    file.commit()


def spans(path, samples, calls):
    """This many spans over the whole run, nine inside a tenth."""
    file = sqlite3.connect(path)
    start, pid = file.execute("select start_ns, pid from segment").fetchone()
    length = (samples - 1) * STEP_NS * 10 // calls
    inner = length // 10

    def rows():
        for loop in range(calls // 10):
            begin, outer = start + loop * length, loop * 10 + 1
            yield outer, None, pid, pid, NAMES[0], begin, begin + length - inner // 2, "nested", "ended"
            for i in range(1, 10):
                at = begin + i * inner - inner // 2
                yield outer + i, outer, pid, pid, NAMES[i], at, at + inner * 4 // 5, "nested", "ended"

    file.executemany("insert into span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) "
                     "values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows())
    file.commit()


def copy(source, target):
    shutil.copy(source, target)
    return target
