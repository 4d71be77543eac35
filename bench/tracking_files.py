"""Tracking and sub-tracking files in gpu_tracker's formats, of any size, for benchmarks and tests."""
import csv
import sqlite3

STATIC = {"ram_unit": "gigabytes", "gpu_ram_unit": "gigabytes", "time_unit": "hours",
          "ram_system_capacity": 67.254165504,
          "gpu_ram_system_capacity": 16.376, "system_core_count": 12, "n_expected_cores": 12, "system_gpu_count": 1,
          "n_expected_gpus": 1}
METRICS = ("main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,combined_gpu_ram,"
           "system_gpu_ram,gpu_sum_utilization_percent,gpu_hardware_utilization_percent,main_n_threads,"
           "descendants_n_threads,combined_n_threads,cpu_system_sum_utilization_percent,"
           "cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,"
           "cpu_main_hardware_utilization_percent,cpu_descendants_sum_utilization_percent,"
           "cpu_descendants_hardware_utilization_percent,cpu_combined_sum_utilization_percent,"
           "cpu_combined_hardware_utilization_percent").split(",")
CALLS = ("process_id", "code_block_name", "position", "timestamp")
START_S = 1746129778.0


def type_of(value):
    return {str: "VARCHAR", int: "INTEGER"}.get(type(value), "FLOAT")


def write_table(connection, table, names, rows):
    rows = iter(rows)
    first = next(rows, None)
    types = [type_of(value) for value in first] if first else ["FLOAT"] * len(names)
    connection.execute(f"create table {table} ({', '.join(f'{n} {t}' for n, t in zip(names, types))})")
    if first:
        insert = f"insert into {table} values ({', '.join('?' * len(names))})"
        connection.execute(insert, first)
        connection.executemany(insert, rows)


def write_tracking(path, rows, static=STATIC):
    """rows: the 21 metrics and the timestamp each"""
    names = [*METRICS, "timestamp"]
    if str(path).endswith(".csv"):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([static.keys(), static.values(), names])
            csv.writer(file).writerows(rows)
        return
    with sqlite3.connect(path) as connection:
        write_table(connection, "static_data", list(static), [tuple(static.values())])
        write_table(connection, "data", names, rows)
    connection.close()


def write_calls(path, rows):
    """rows: process_id, code_block_name, position, timestamp"""
    if str(path).endswith(".csv"):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerow(CALLS)
            csv.writer(file).writerows(rows)
        return
    with sqlite3.connect(path) as connection:
        write_table(connection, "data", CALLS, rows)
    connection.close()


def timepoints(n, period_s):
    for i in range(n):
        yield (*(float((i * (k + 3)) % 1009) / 7 for k in range(10)), 12, i % 5, 12 + i % 5,
               *(float((i * (k + 5)) % 2003) / 11 for k in range(8)), START_S + i * period_s)


def calls(n, period_s, n_names=10):
    """Blocks in succession, each call with a smaller one inside it"""
    for i in range(n // 2):
        begin_s, name = START_S + i * 2 * period_s, f"package/module.py:{i % n_names + 1}"
        yield 265016, name, 0, begin_s
        yield 265016, "package/inner.py:load", 0, begin_s + 0.3 * period_s
        yield 265016, "package/inner.py:load", 1, begin_s + 1.1 * period_s
        yield 265016, name, 1, begin_s + 1.9 * period_s
