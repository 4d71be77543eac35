"""wattle.cap.tune on fake cards that obey limits: finds the best limit, shows it, and restores the previous one."""
import json
import re
import sys

from caps_common import STEPS, Machine
from gpu_card import Card
from harness import BUILD, TESTS, main, near, test
from package import python

# where a window's power is judged: with 20 ms, it depends on the phase of the windows
PROMPT_COUNTER = ("energy_period_ms 1",)


@test
def finds_the_best(workdir):
    """tune: finds nearly the known optimum of an objective, states the saving, and restores the limit"""
    card = Card(now_w=380, more=PROMPT_COUNTER)
    machine = Machine(workdir, card, card)
    goals = ("energy", "slowdown=10")
    searches = []
    for gpu, goal in enumerate(goals):  # both at once, each on its card
        steps = "import json\n" + STEPS.replace("gpu=0", f"gpu={gpu}").replace("**CARD", "now_w=380")
        (workdir.folder / f"search{gpu}.py").write_text(steps + f"""
from harness import run_first
is_first = run_first()  # it sleeps in place of the card's work: the card's pace is no matter of other programs
seen = []
result = wattle.cap.tune("gpu-{gpu}", step, objective="{goal}", caps=5, seconds=1, settle=0.02, seed=3,
                         progress=seen.append)
assert wattle.cap.get("gpu-{gpu}").current_w == 380, wattle.cap.get("gpu-{gpu}")
assert seen and seen[-1].done > 0.5 and result.previous_w == 380
print(result.to_json())
print(json.dumps(is_first))
""")
        searches.append(workdir.start(f"search{gpu}.py", program=sys.executable, env=machine.environment))
    for search, objective in zip(searches, ("energy", "slowdown")):
        done = workdir.finish(search)
        assert done.returncode == 0 and not done.stderr, done
        printed, is_first = done.stdout.rsplit("\n", 2)[:2]
        result = json.loads(printed)
        for row in result["caps"]:
            near(row["energy_j"] / row["time_s"], card.power_w(row["cap_w"]), 0.03)
        if not json.loads(is_first):
            continue  # the steps' times are those of a busy machine
        bound = {"slowdown_percent": 10} if objective == "slowdown" else {"from_w": 120}
        assert card.worse_percent("energy", result["chosen_w"], **bound) <= 6, (result, card.best_w("energy", **bound))
        energy_j, time_s = card.step(result["chosen_w"])
        near(result["saving_percent"], (1 - energy_j / card.step(400)[0]) * 100, absolute=5)
        near(result["slowdown_percent"], (time_s / card.step(400)[1] - 1) * 100, absolute=8)
        for row in result["caps"]:
            near(row["time_s"] / row["steps"], card.step(row["cap_w"], 0.01)[1], 0.15)


@test
def every_way_out_of_tune(workdir):
    """exception, KeyboardInterrupt, end of the work, foreign change, os._exit, kill -9: the limit is restored"""
    machine = Machine(workdir)
    machine.python(STEPS + """
def tune(step, **options):
    return wattle.cap.tune("gpu-0", step, caps=3, seconds=0.2, settle=0.02, **options)
n = 0
def fails():
    global n
    n += 1
    step()
    if n > 30: raise kind("mine")
for kind in (ValueError, KeyboardInterrupt, SystemExit):
    n = 0
    try: tune(fails)
    except kind as why: assert str(why) == "mine" and limit_w() == 400 and n == 31, (why, n)
    else: assert False
try: tune(step, sync=lambda: 1 / 0)
except ZeroDivisionError: assert limit_w() == 400
else: assert False
try: tune(iter(range(3)))
except RuntimeError as why: assert "steps" in str(why) and limit_w() == 400, why
else: assert False
def batches():
    for i in range(150):
        step()
        yield i
result = tune(batches())  # ends before enough is known: what there is counts
assert len(result.caps) >= 2 and limit_w() == 400, result
with wattle.cap.set("gpu-0", 250):
    tune(step)
    assert limit_w() == 250
assert limit_w() == 400
def meddles():
    step()
    if limit_w() == 120: open("cards.limits", "a").write("1 0 321000 1\\n")
try: tune(meddles)
except RuntimeError as why: assert "321" in str(why) and limit_w() == 321, why
else: assert False
""")
    machine.another_program_sets(400)
    for end in ("os._exit(1)", "os.kill(os.getpid(), 9)"):
        process, _ = machine.start(STEPS.replace("**CARD", "**{}") + f"""
def ends():
    step()
    if limit_w() < 300:
        print("ready", flush=True)
        {end}
wattle.cap.tune("gpu-0", ends, caps=4, seconds=0.4, settle=0.02)
""")
        workdir.finish(process)
        assert machine.is_back(), end


@test
def two_searches(workdir):
    """second thread that searches on the same device: refused while the first one runs"""
    machine = Machine(workdir)
    lines, _ = machine.python(STEPS + """
told = []
def other():
    for call in (lambda: wattle.cap.tune("gpu-0", step), lambda: wattle.cap.set("gpu-0", 300),
                 lambda: wattle.cap.reset("gpu-0")):
        try: call()
        except BlockingIOError as why: told.append(str(why))
def steps():
    if not told:
        thread = threading.Thread(target=other); thread.start(); thread.join()
    step()
result = wattle.cap.tune("gpu-0", steps, caps=3, seconds=0.3, settle=0.02)
print(len(told), len(result.caps), all("another thread" in text for text in told), limit_w())
""")
    assert lines == ["3 3 True 400.0"], lines


@test
def what_a_result_shows(workdir):
    """JSON, CSV in gpu_tracker's layout, a table, HTML, a picture"""
    machine = Machine(workdir)
    lines, _ = machine.python(STEPS + """
import json
result = wattle.cap.tune("gpu-0", step, caps=4, seconds=0.2, settle=0.02, objective="edp")
data = json.loads(result.to_json())
assert {"device", "objective", "chosen_w", "previous_w", "saving_percent", "slowdown_percent", "caps",
        "model"} <= set(data)
assert all({"cap_w", "steps", "energy_j", "time_s", "objective"} <= set(row) for row in data["caps"])
result.to_csv("table.csv")
lines = open("table.csv").read().splitlines()
assert len(lines) == 5 and float(lines[-1].split(":,")[1]) == result.chosen_w, lines
cap, steps, kwh, objective = map(float, lines[0].split(","))
assert cap == 400 and steps == result.caps[0].steps and abs(kwh * 3.6e6 / result.caps[0].energy_j - 1) < 1e-9
assert "gpu-0" in str(result) and "<table>" in result._repr_html_()
with result.apply(): print(limit_w() == round(result.chosen_w, 3))
try:
    import matplotlib; matplotlib.use("Agg")
    axes = result.plot()
    assert axes.get_xlabel() == "limit (W)" and axes.get_ylabel().startswith("edp of a step")
except ModuleNotFoundError: pass
try: assert list(result.to_pandas()["limit_w"]) == [row.cap_w for row in result.caps]
except ModuleNotFoundError: pass
""")
    assert lines == ["True"], lines


@test
def limits_that_are_added(workdir):
    """Without caps= there are eight candidates, all in the CSV; limits added near the best one are separate"""
    machine = Machine(workdir)
    lines, _ = machine.python(STEPS + """
result = wattle.cap.tune("gpu-0", step, seconds=0.3, settle=0.01, objective="edp")
data = result.to_dict()
result.to_csv("table.csv")
print(len(data["caps"]), len(open("table.csv").read().splitlines()), len(result.caps) - len(data["added_caps"]),
      sorted(row["cap_w"] for row in data["caps"])[0])
""")
    assert lines == ["8 9 8 120.0"], lines


@test
def two_cards_at_once(workdir):
    """"gpus": the same limit for both, their energies added"""
    machine = Machine(workdir, Card(more=PROMPT_COUNTER), Card(full_w=300, more=PROMPT_COUNTER))
    lines, _ = machine.python(STEPS + """
result = wattle.cap.tune("gpus", step, caps=3, seconds=0.4, settle=0.02, objective="energy")
for row in result.caps:
    power_w = card.power_w(row.cap_w) + Card(full_w=300).power_w(row.cap_w)
    assert abs(row.energy_j / row.time_s / power_w - 1) < 0.04, (row, power_w)
print(result.device, limit_w(0), limit_w(1))
""")
    assert lines == ["gpu-0,gpu-1 400.0 400.0"], lines


@test
def late_card(workdir):
    """card that follows its limits after 1.2 s, no settle=: each window still belongs to its own limit"""
    machine = Machine(workdir, Card(more=("limit_delay_ms 1200", *PROMPT_COUNTER)))
    machine.python(STEPS + """
result = wattle.cap.tune("gpu-0", step, caps=2, seconds=0.2, objective="energy")
for row in result.caps:
    assert abs(row.energy_j / row.time_s / card.power_w(row.cap_w) - 1) < 0.04, row
""")


@test
def a_package(workdir):
    """CPU packages: powercap's counter and registers; all of them are restored"""
    machine = Machine(workdir, Card(default_w=200, max_w=200, full_w=190, idle_w=40))
    zone = workdir.folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    registers = {"name": "package-0", "energy_uj": "0", "max_energy_range_uj": "262143328850", "enabled": "1",
                 "constraint_0_name": "long_term", "constraint_0_power_limit_uw": "200000000",
                 "constraint_0_max_power_uw": "200000000", "constraint_1_name": "short_term",
                 "constraint_1_power_limit_uw": "240000000", "constraint_1_max_power_uw": "0"}
    for name, value in registers.items():
        (zone / name).write_text(value + "\n")
    simulator = workdir.start("--gpu", 0, "--limit", zone / "constraint_0_power_limit_uw", "--energy",
                              zone / "energy_uj",
                              program=BUILD / "tests/fakes/limit_sim", env=machine.environment)
    assert simulator.stdout.readline() == b"ready\n"
    machine.environment["WATTLE_NVML"] = "/nowhere"
    lines, _ = machine.python(STEPS + """
LIMIT = "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
card = Card(default_w=200, max_w=200, full_w=190, idle_w=40)
def limit_w(): return int(open(LIMIT).read()) / 1e6
with wattle.cap.set("package-0", 100): print(limit_w(), wattle.cap.get("package-0").current_w)
result = wattle.cap.tune("package-0", step, caps=3, seconds=0.4, settle=0.02, objective="energy")
for row in result.caps:
    assert abs(row.energy_j / row.time_s / card.power_w(row.cap_w) - 1) < 0.05, row
print(limit_w(), result.device)
""")
    assert lines == ["100.0 100.0", "200.0 package-0"], lines
    assert (zone / "constraint_1_power_limit_uw").read_text().strip() == "240000000"
    assert not machine.leases()


@test
def the_example(workdir):
    """examples/tune_cap.py, with a step that the fake card slows: a table, a CSV, and the previous limit"""
    machine = Machine(workdir)
    (workdir.folder / "tune_cap.py").write_text((TESTS.parent / "examples/tune_cap.py").read_text(encoding="utf-8"))
    lines, done = machine.python(STEPS + """
import tune_cap
tune_cap.main(step)
""", "--objective", "edp", "--seconds", 0.2, "--settle", 0.02, "--caps", 4, "--steps", 5, "--csv", "caps.csv")
    assert lines[0].startswith("gpu-0: ") and "saves" in lines[0] and lines[-1].startswith("5 steps under "), lines
    assert len((workdir.folder / "caps.csv").read_text().splitlines()) == 5 and "100%" in done.stderr
    assert machine.limit_w() == 400
    lines, done = python(workdir, "import runpy, sys; sys.modules['torch'] = None; runpy.run_path('tune_cap.py')",
                         env={**machine.environment, "WATTLE_NVML": "/nowhere"})
    assert not lines and "Traceback" not in done.stderr, done


@test
def the_manual(workdir):
    """docs/caps.md: its Python runs unchanged, except for the seconds"""
    machine = Machine(workdir)
    page = (TESTS.parent / "docs/caps.md").read_text(encoding="utf-8")
    blocks = re.findall("^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    machine.python(STEPS + "train = train_step = step\n" + blocks[0].replace("seconds=10", "seconds=0.15, settle=0.01"))
    assert machine.limit_w() == 400 and (workdir.folder / "caps.csv").exists()


if __name__ == "__main__":
    main()
