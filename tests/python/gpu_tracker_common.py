"""Shared by the tests of gpu_tracker's interface: its files by hand, and how refusals are checked."""
import csv
import sqlite3

from harness import Skip

try:
    import pandas
except ImportError:
    pandas = None

STATIC = ("ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,system_core_count,"
          "n_expected_cores,system_gpu_count,n_expected_gpus\ngigabytes,gigabytes,hours,64.5,0.0,4,4,0,0\n")
METRICS = ("main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,combined_gpu_ram,"
           "system_gpu_ram,gpu_sum_utilization_percent,gpu_hardware_utilization_percent,main_n_threads,"
           "descendants_n_threads,combined_n_threads,cpu_system_sum_utilization_percent,"
           "cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,"
           "cpu_main_hardware_utilization_percent,cpu_descendants_sum_utilization_percent,"
           "cpu_descendants_hardware_utilization_percent,cpu_combined_sum_utilization_percent,"
           "cpu_combined_hardware_utilization_percent").split(",")
COLUMNS = "process_id,code_block_name,position,timestamp"
# Ten timepoints a second apart; metric number k is k + the second.
TRACKING = STATIC + ",".join(METRICS) + ",timestamp\n" + "".join(
    ",".join(str(k + second) for k in range(len(METRICS))) + f",{1000 + second}\n" for second in range(10))
# outer 0.5..8.5 with inner 2..3 and 5..5.5 in it; inner calls itself; "lost" is never stopped; process 8 runs inner
# 7..7.25.
MARKS = COLUMNS + """
7,outer,0,1000.5
7,inner,0,1002.0
7,inner,0,1002.25
7,inner,1,1002.75
7,inner,1,1003.0
7,inner,0,1005.0
7,inner,1,1005.5
8,inner,0,1007.0
8,inner,1,1007.25
7,lost,0,1008.0
7,outer,1,1008.5
"""


def write(workdir, name, text):
    (workdir.folder / name).write_text(text)
    return str(workdir.folder / name)


def as_sqlite(workdir, name, tables):
    """The same rows as a database: {table: CSV text}."""
    path = workdir.folder / name
    connection = sqlite3.connect(path)
    for table, text in tables.items():
        header, *rows = csv.reader(text.splitlines())
        connection.execute(f"CREATE TABLE {table} ({', '.join(f'{column} NUMERIC' for column in header)})")
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(header))})", rows)
    connection.commit()
    connection.close()
    return str(path)


def rows_of(path):
    if str(path).endswith(".csv"):
        with open(path, newline="", encoding="utf-8") as file:
            return [tuple(row) for row in csv.reader(file)][1:]
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM data").fetchall()
    finally:
        connection.close()


def refused(kind, call, *parts):
    """The message of the exception that the call must raise."""
    try:
        call()
    except kind as failure:
        assert type(failure) is kind and all(part in str(failure) for part in parts), repr(failure)
        return
    raise AssertionError(f"no {kind.__name__}")


def need_pandas():
    if pandas is None:
        raise Skip("no pandas")
