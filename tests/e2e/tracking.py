"""gpu_tracker's tracking file: read as its analyzer reads it, both formats."""
import csv
import math
import sqlite3
import time

from harness import BURNER, main, near, test

STATIC = ("ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,system_core_count,n_expected_cores,"
          "system_gpu_count,n_expected_gpus").split(",")
DATA = ("main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,combined_gpu_ram,"
        "system_gpu_ram,gpu_sum_utilization_percent,gpu_hardware_utilization_percent,main_n_threads,"
        "descendants_n_threads,combined_n_threads,cpu_system_sum_utilization_percent,"
        "cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,"
        "cpu_main_hardware_utilization_percent,cpu_descendants_sum_utilization_percent,"
        "cpu_descendants_hardware_utilization_percent,cpu_combined_sum_utilization_percent,"
        "cpu_combined_hardware_utilization_percent,timestamp").split(",")
TEXTS = STATIC[:3]


def read_csv(path):
    with open(path, newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == STATIC and lines[2] == DATA, lines[:3]
    static = {name: value if name in TEXTS else float(value) for name, value in zip(STATIC, lines[1])}
    return static, [dict(zip(DATA, (float(field or "nan") for field in line))) for line in lines[3:]]


def read_sqlite(path):
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    static = [dict(row) for row in connection.execute("select * from static_data")]
    data = [dict(row) for row in connection.execute("select * from data order by timestamp")]
    connection.close()
    assert len(static) == 1 and list(static[0]) == STATIC and list(data[0]) == DATA, (static, data[:1])
    return static[0], [{name: math.nan if row[name] is None else row[name] for name in row} for row in data]


READERS = {"track.csv": read_csv, "track.sqlite": read_sqlite}


def check_contents(static, data, before, after):
    assert static["ram_unit"] == "megabytes" and static["time_unit"] == "seconds", static
    assert float(static["ram_system_capacity"]) > 100 and float(static["n_expected_cores"]) == 1, static
    assert len(data) >= 8, len(data)
    stamps = [row["timestamp"] for row in data]
    assert stamps == sorted(stamps) and before <= stamps[0] and stamps[-1] <= after, (before, stamps, after)
    assert all(row["main_ram"] >= 0 for row in data[:-1])  # the last row is taken when the process has ended
    near(max(row["main_ram"] for row in data[:-1]), 81, absolute=4)
    assert all(row["combined_ram"] >= row["main_ram"] for row in data[:-1])
    assert not any(row["main_n_threads"] > 1 or row["system_ram"] < 1 for row in data), data[-1]
    assert sum(math.isnan(value) for row in data for value in row.values()) < 20, "most must be known"


@test
def both_layouts(workdir):
    """CSV and SQLite: gpu_tracker's columns in its order, correct contents, wall-clock timestamps"""
    for name, reader in READERS.items():
        before = time.time()
        done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--tracking-file", name, "-i", "50ms",
                           "--ram-unit", "megabytes", "--time-unit", "seconds", "--expected-cores", "1", "--", BURNER,
                           "memory", 80_000_000, "1")
        assert done.returncode == 0, done
        check_contents(*reader(workdir.folder / name), before, time.time())


@test
def every_cell_is_a_number(workdir):
    """CSV and SQLite, any interval: all 21 figures of every row are known, also before the machine's counters change"""
    for interval in ("1ms", "2ms", "10ms", "25ms", "100ms"):
        for name, reader in READERS.items():
            done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--tracking-file", name, "-i",
                                  interval,
                                  "--", BURNER, "cpu", "0.15")
            assert done.returncode == 0, done
            data = reader(workdir.folder / name)[1]
            unknown = [(row["timestamp"], key) for row in data for key, value in row.items() if math.isnan(value)]
            assert data and not unknown, (interval, name, unknown)


@test
def busy_percentages(workdir):
    """one busy core: 100 % in the tracking file, too; hardware is the sum over the expected cores"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--tracking-file", "track.csv", "-i", "100ms", "--expected-cores",
                   "2",
                   "--", BURNER, "cpu", "1.5")
    _, data = read_csv(workdir.folder / "track.csv")
    busy = sorted(row["cpu_main_sum_utilization_percent"] for row in data)
    # Where the machine delayed the recorder between its clock and /proc, one row has too much and the next too little.
    assert 10 < busy[len(busy) // 2] <= 110 and busy[len(busy) * 3 // 4] < 125, busy
    for row in data:
        near(row["cpu_main_hardware_utilization_percent"], row["cpu_main_sum_utilization_percent"] / 2, absolute=1e-9)


@test
def exported_is_the_same(workdir):
    """export --format gpu_tracker: makes the same rows from a stored run"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--tracking-file", "track.csv", "-i", "50ms", "--", BURNER, "cpu",
                   "0.7")
    done = workdir.wattle("export", "run.sqlite", "--format", "gpu_tracker", "-o", "out.csv")
    assert done.returncode == 0, done
    static, data = read_csv(workdir.folder / "track.csv")
    out_static, out_data = read_csv(workdir.folder / "out.csv")
    assert out_static == static
    assert len(out_data) == len(data)
    for row, out in zip(data, out_data):
        for name in DATA:
            assert math.isnan(out[name]) == math.isnan(row[name]), (name, out, row)
            if not math.isnan(row[name]):
                near(out[name], row[name], relative=1e-9, absolute=1e-9)


@test
def overwrite(workdir):
    """--overwrite: replaces an existing tracking file"""
    (workdir.folder / "track.csv").write_text("old")
    done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--tracking-file", "track.csv", "--", "sleep",
                          "0.3")
    assert done.returncode == 0, done
    read_csv(workdir.folder / "track.csv")


@test
def pandas_reads_it(workdir):
    """pandas, if installed: reads both formats with numeric columns"""
    from harness import Skip
    try:
        import pandas
    except ImportError:
        raise Skip("no pandas")
    for name in READERS:
        workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--tracking-file", name, "--", "sleep", "0.5")
    static = pandas.read_csv(workdir.folder / "track.csv", nrows=1).iloc[0]
    data = pandas.read_csv(workdir.folder / "track.csv", skiprows=2)
    assert static["ram_unit"] == "gigabytes" and all(data.dtypes != object), data.dtypes
    connection = sqlite3.connect(workdir.folder / "track.sqlite")
    assert all(pandas.read_sql_query("select * from data", connection).dtypes != object)
    connection.close()


if __name__ == "__main__":
    main()
