#!/usr/bin/env python3
"""Writes tests/machines/*/{sys,proc}: the parts of /sys and /proc that the sensors read, laid out as the kernel does.

The real folders are nested below devices/virtual/powercap; class/powercap has a flat link to each of them, at every
depth. Run it from the root of the project after a change here and check the difference; `expected` files are
written by hand.
"""
import os
import shutil
import sys

from machine_gpus import card, gpu_metrics, kfd_node, kfd_process

INTEL, INTEL_DRAM, AMD, WHOLE_JOULES = 262143328850, 65712999613, 65532610987, 4294967295000000


class Machine:
    def __init__(self, root, name):
        self.folder = os.path.join(root, name)
        for part in ("sys", "proc"):
            shutil.rmtree(os.path.join(self.folder, part), ignore_errors=True)
        self.write("sys/kernel/.keep", "")

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)

    def write_bytes(self, path, data):
        self.write(path, "")
        with open(os.path.join(self.folder, path), "wb") as out:
            out.write(data)

    def link(self, path, target):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)

    def control_type(self, name):
        self.write(f"sys/devices/virtual/powercap/{name}/enabled", "1\n")
        self.link(f"sys/class/powercap/{name}", f"../../devices/virtual/powercap/{name}")

    def zone(self, id, name, energy_uj, range_uj, limits=()):
        """intel-rapl:0:1 is in intel-rapl/intel-rapl:0/intel-rapl:0:1."""
        control_type, *numbers = id.split(":")
        folders = [control_type]
        for i in range(len(numbers)):
            folders.append(":".join([control_type] + numbers[: i + 1]))
        folder = "devices/virtual/powercap/" + "/".join(folders)
        self.write(f"sys/{folder}/name", name + "\n")
        self.write(f"sys/{folder}/max_energy_range_uj", f"{range_uj}\n")
        self.write(f"sys/{folder}/enabled", f"{1 if limits else 0}\n")
        if energy_uj is not None:
            self.write(f"sys/{folder}/energy_uj", f"{energy_uj}\n")
        for i, (label, limit_uw, max_uw, window_us) in enumerate(limits):
            for name, value in (("name", label), ("power_limit_uw", limit_uw), ("time_window_us", window_us),
                                ("max_power_uw", max_uw)):
                if value is not None:
                    self.write(f"sys/{folder}/constraint_{i}_{name}", f"{value}\n")
        self.link(f"sys/{folder}/device", f"../../{folders[-2]}")
        self.link(f"sys/{folder}/subsystem", "/".join([".."] * (len(folders) + 3)) + "/class/powercap")
        self.link(f"sys/class/powercap/{id}", f"../../{folder}")
        return f"sys/{folder}"

    def cpuinfo(self, vendor, model, sockets, cores, threads=2, flags="fpu vme de pse tsc msr"):
        blocks = []
        for socket in range(sockets):
            for thread in range(cores * threads):
                blocks.append(
                    f"processor\t: {len(blocks)}\nvendor_id\t: {vendor}\nmodel name\t: {model}\n"
                    f"physical id\t: {socket}\nsiblings\t: {cores * threads}\ncore id\t\t: {thread % cores}\n"
                    f"cpu cores\t: {cores}\nflags\t\t: {flags}\n\n")
        self.write("proc/cpuinfo", "".join(blocks))


    def cpuinfo_arm(self, cpus, part):
        block = "processor\t: {}\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {}\n\n"
        self.write("proc/cpuinfo", "".join(block.format(cpu, part) for cpu in range(cpus)))

    def topology(self, cpus, die=None):
        """cpus: the package of each CPU that matters."""
        for cpu, package in cpus.items():
            folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
            self.write(f"{folder}/physical_package_id", f"{package}\n")
            if die is not None:
                self.write(f"{folder}/die_id", f"{die[cpu]}\n")

    def hwmon(self, number, device, files, name=None, within="platform"):
        """class/hwmon/hwmonN is a link to a folder below the hardware's own; `device` links back to that. name None: an
        old driver, whose attributes, `name` too, are in the hardware's folder."""
        hardware = f"sys/devices/{within}/{device}"
        folder = f"{hardware}/hwmon/hwmon{number}"
        for file, value in files.items():
            self.write(f"{hardware if name is None else folder}/{file}", f"{value}\n")
        if name is not None:
            self.write(f"{folder}/name", name + "\n")
        self.link(f"{folder}/device", f"../../../{device}")
        self.link(f"sys/class/hwmon/hwmon{number}", f"../../{folder[len('sys/'):]}")

    def thermal_zone(self, number, kind, millidegrees):
        folder = f"devices/virtual/thermal/thermal_zone{number}"
        self.write(f"sys/{folder}/type", kind + "\n")
        self.write(f"sys/{folder}/temp", f"{millidegrees}\n")
        self.link(f"sys/class/thermal/thermal_zone{number}", f"../../{folder}")

    def coretemp(self, number, package, millidegrees):
        self.hwmon(number, f"coretemp.{package}", {
            "temp1_label": f"Package id {package}", "temp1_input": millidegrees, "temp1_crit": 100000,
            "temp2_label": "Core 0", "temp2_input": millidegrees + 3000}, name="coretemp")

    def supply(self, name, **files):
        for file, value in files.items():
            self.write(f"sys/class/power_supply/{name}/{file}", f"{value}\n")


def limits(watts, max_watts=None):
    """The two constraints of a package: long and short term. The kernel reports the rated power for the first, none for
    the second (reading it fails, as does either of a zone without such a limit: here there is no file)."""
    max_uw = watts * 1000000 if max_watts is None else max_watts * 1000000
    return (("long_term", watts * 1000000, max_uw or None, 27983872), ("short_term", watts * 1250000, None, 2440))


def desktop_intel(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", 1, 6)
    m.control_type("intel-rapl")
    m.control_type("intel-rapl-mmio")
    m.zone("intel-rapl:0", "package-0", 84731228417, INTEL, limits(95))
    m.zone("intel-rapl:0:0", "core", 41923774512, INTEL)
    m.zone("intel-rapl:0:1", "uncore", 1093284412, INTEL)
    m.zone("intel-rapl:0:2", "dram", 9120037771, INTEL)
    m.zone("intel-rapl:1", "psys", 190222388114, INTEL, limits(0))
    m.zone("intel-rapl-mmio:0", "package-0", 84731228417, INTEL, limits(125, 95))
    m.thermal_zone(0, "acpitz", 16800)
    m.coretemp(3, 0, 47000)


def xeon_2s(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 2, 24)
    m.control_type("intel-rapl")
    # Registered in this order on a machine whose second socket started first: zone numbers have no meaning.
    m.zone("intel-rapl:0", "package-1", 101223388712, INTEL, limits(205))
    m.zone("intel-rapl:0:0", "dram", 31223388712, INTEL_DRAM)
    m.zone("intel-rapl:1", "package-0", 99823388712, INTEL, limits(205))
    m.zone("intel-rapl:1:0", "dram", 30023388712, INTEL_DRAM)
    m.control_type("dtpm")
    m.zone("dtpm:0", "package-0", 5, 10)


def xeon_dies(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Platinum 9242 CPU @ 2.30GHz", 1, 48)
    m.control_type("intel-rapl")
    for die in range(2):
        m.zone(f"intel-rapl:{die}", f"package-0-die-{die}", 1000223388 * (die + 7), INTEL, limits(175))
        m.zone(f"intel-rapl:{die}:0", "dram", 331223388 * (die + 3), INTEL_DRAM)


def xeon_psys(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+", 2, 56)
    m.control_type("intel-rapl")
    m.zone("intel-rapl:0", "package-0", 101223388712, INTEL, limits(350))
    m.zone("intel-rapl:0:0", "dram", 31223388712, INTEL_DRAM)
    m.zone("intel-rapl:1", "psys", 812345000000, WHOLE_JOULES)
    m.zone("intel-rapl:2", "package-1", 99823388712, INTEL, limits(350))
    m.zone("intel-rapl:2:0", "dram", 30023388712, INTEL_DRAM)
    m.zone("intel-rapl:3", "psys-1", 799123000000, WHOLE_JOULES)


def epyc(m):
    m.cpuinfo("AuthenticAMD", "AMD EPYC 7763 64-Core Processor", 2, 64)
    m.control_type("intel-rapl")
    for socket in range(2):
        m.zone(f"intel-rapl:{socket}", f"package-{socket}", 65032610000 + socket, AMD)
        m.zone(f"intel-rapl:{socket}:0", "core", 5032610000 + socket, AMD)


def epyc_dies(m):
    m.cpuinfo("AuthenticAMD", "AMD EPYC 7601 32-Core Processor", 2, 32)
    m.control_type("intel-rapl")
    for socket in range(2):
        for die in range(4):
            zone = f"intel-rapl:{socket * 4 + die:x}"
            m.zone(zone, f"package-{socket}-die-{die}", 15032610000 + socket, AMD)
            m.zone(zone + ":0", "core", 1032610000 + socket * 4 + die, AMD)


def vm(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 1, 4,
              flags="fpu vme de pse tsc msr hypervisor")


def one_unreadable(m):
    """A folder in place of package-1's counter: reading it fails for root too."""
    xeon_2s(m)
    os.remove(os.path.join(m.folder, "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj"))
    m.write("sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj/.keep", "")


def none_readable(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", 1, 4)
    m.control_type("intel-rapl")
    folder = m.zone("intel-rapl:0", "package-0", None, INTEL, limits(15))
    m.link(folder + "/energy_uj", "../../../nowhere")


def laptop_battery(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", 1, 4)
    m.control_type("intel-rapl")
    m.zone("intel-rapl:0", "package-0", 4731228417, INTEL, limits(15))
    m.zone("intel-rapl:0:0", "core", 1923774512, INTEL)
    m.zone("intel-rapl:0:1", "uncore", 93284412, INTEL)
    m.zone("intel-rapl:0:2", "dram", 1120037771, INTEL)
    m.supply("AC", type="Mains", online=0)
    m.supply("BAT0", type="Battery", status="Discharging", present=1, power_now=5210000, energy_now=21340000)
    m.supply("BAT1", type="Battery", status="Discharging", present=1, current_now=-300000, voltage_now=11000000)
    m.supply("BAT2", type="Battery", status="Unknown", present=0)
    m.supply("hidpp_battery_0", type="Battery", scope="Device", status="Discharging", power_now=9000000)
    m.hwmon(0, "acpitz", {"temp1_input": 25000}, name="acpitz")
    m.thermal_zone(0, "acpitz", 25000)
    m.thermal_zone(1, "x86_pkg_temp", 52000)
    m.coretemp(4, 0, 51600)


def grace(m):
    """A superchip of two Graces; hwmon numbers in order of arrival."""
    m.cpuinfo_arm(144, "0xd4f")
    watts = (("Module", 280), ("Grace", 180), ("CPU", 140), ("SysIO", 25))
    meters = [(f"{what} Power Socket {socket}", power + 10 * socket) for socket in range(2) for what, power in watts]
    for i, (label, power) in enumerate(meters):
        m.hwmon((5 * i + 3) % 8 + 1, f"ACPI000D:{i:02x}", {
            "name": "power_meter", "power1_oem_info": label, "power1_average": power * 1000000,
            "power1_average_interval": 50, "power1_accuracy": "98.0%", "power1_is_battery": 0},
            within="LNXSYSTM:00/LNXSYBUS:00")


def acpi_meter(m):
    """Two meters without a description, one of them unreadable, and a battery's."""
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 2, 14)
    files = {"power1_average": 212000000, "power1_average_interval": 1000, "power1_accuracy": "95.0%",
             "power1_is_battery": 0, "power1_oem_info": ""}
    m.hwmon(7, "ACPI000D:00", dict(files, power1_average=4294967295000), name="power_meter", within="LNXSYSTM:00")
    m.hwmon(2, "ACPI000D:01", files, name="power_meter", within="LNXSYSTM:00")
    m.hwmon(3, "ACPI000D:02", dict(files, power1_average=34000000), name="power_meter", within="LNXSYSTM:00")
    m.hwmon(4, "ACPI000D:03", dict(files, power1_is_battery=1), name="power_meter", within="LNXSYSTM:00")
    m.coretemp(0, 1, 61000)
    m.coretemp(1, 0, 58000)


def ina3221(m, number, address, rails):
    files = {}
    for i, (label, millivolts, milliamperes) in enumerate(rails, 1):
        files.update({f"in{i}_label": label, f"in{i}_input": millivolts, f"curr{i}_input": milliamperes,
                      f"in{i + 3}_input": 40})
    files.update({"in7_label": "sum of shunt voltages", "in7_input": 120, "update_interval": 5})
    device = f"1-{address}"
    m.hwmon(number, device, files, name="ina3221", within="platform/c240000.i2c/i2c-1")
    m.link(f"sys/bus/i2c/drivers/ina3221/{device}", f"../../../../devices/platform/c240000.i2c/i2c-1/{device}")


def jetson_orin(m):
    m.cpuinfo_arm(8, "0xd42")
    ina3221(m, 2, "0040", (("VDD_IN", 5016, 1520), ("VDD_CPU_GPU_CV", 4992, 480), ("VDD_SOC", 5000, 300)))
    m.thermal_zone(0, "cpu-thermal", 48250)
    m.thermal_zone(1, "gpu-thermal", 47000)


def jetson_xavier(m):
    """AGX: no total rail, two chips, separate parts."""
    m.cpuinfo_arm(8, "0x004")
    ina3221(m, 3, "0041", (("CV", 19000, 0), ("VDDRQ", 19000, 60), ("SYS5V", 19000, 120)))
    ina3221(m, 4, "0040", (("GPU", 19000, 210), ("CPU", 19000, 100), ("SOC", 19000, 110)))


def cray_ex(m):
    m.cpuinfo("AuthenticAMD", "AMD EPYC 7763 64-Core Processor", 1, 64)
    stamp = 1741234567890123
    counters = {"": (1120, 48123456), "cpu_": (212, 9012345), "memory_": (64, 3012345)}
    counters.update({f"accel{i}_": (170 + i, 7012345 + i) for i in range(4)})
    for prefix, (watts, joules) in counters.items():
        m.write(f"sys/cray/pm_counters/{prefix}energy", f"{joules} J {stamp} us\n")
        m.write(f"sys/cray/pm_counters/{prefix}power", f"{watts} W {stamp} us\n")
    m.write("sys/cray/pm_counters/power_cap", f"0 W {stamp} us\n")
    for name, value in (("freshness", 81234), ("generation", 3), ("startup", 1738000000), ("raw_scan_hz", 10),
                        ("version", 2)):
        m.write(f"sys/cray/pm_counters/{name}", f"{value}\n")


def amd_energy_server(m):
    """Two sockets of two NUMA nodes each (NPS2): the driver reports the nodes as sockets."""
    m.cpuinfo("AuthenticAMD", "AMD EPYC 7742 64-Core Processor", 2, 64)
    m.topology({0: 0, 32: 0, 64: 1, 96: 1})
    for node in range(4):
        m.write(f"sys/devices/system/node/node{node}/cpulist", f"{32 * node}-{32 * node + 31}\n")
    files = {}
    for i in range(4):
        files.update({f"energy{i + 1}_label": f"Ecore{i:03}", f"energy{i + 1}_input": 1000000 * (i + 1)})
    for node, energy in enumerate((812345678901, 812345678905, 799345678902, 799345678909)):
        files.update({f"energy{node + 5}_label": f"Esocket{node}", f"energy{node + 5}_input": energy})
    m.hwmon(5, "amd_energy.0", files, name="amd_energy")
    for i in range(2):
        m.hwmon(6 + i, f"0000:00:{0x18 + i:x}.3", {
            "temp1_label": "Tctl", "temp1_input": 71000 + 1000 * i, "temp2_label": "Tdie",
            "temp2_input": 61000 + 1000 * i}, name="k10temp", within="pci0000:00")


def perf_only(m):
    """Only the PMU. Its type is that of software events and its code cpu-clock (ns), so that the system call works on
    any machine: 2^-32 J a nanosecond are 0.23 W."""
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz", 1, 12)
    m.topology({0: 0})
    folder = "sys/bus/event_source/devices/power"
    m.write(f"{folder}/type", "1\n")
    m.write(f"{folder}/cpumask", "0\n")
    m.write(f"{folder}/format/event", "config:0-7\n")
    for event in ("energy-pkg", "energy-ram"):
        m.write(f"{folder}/events/{event}", "event=0x00\n")
        m.write(f"{folder}/events/{event}.unit", "Joules\n")
        m.write(f"{folder}/events/{event}.scale", "2.3283064365386962890625e-10\n")


def ampere_altra(m):
    m.cpuinfo_arm(80, "0xd0c")
    names = ("CORE VRD", "SoC", "DIMM VRD1", "DIMM VRD2", "RCA VRD")
    files = {"temp1_label": "temp1 SoC", "temp1_input": 44000}
    for i, (name, watts) in enumerate(zip(names, (61.5, 22.25, 9, 8.5, 19.5)), 1):
        files.update({f"power{i}_label": f"power{i} {name}", f"power{i}_input": int(watts * 1000000)})
    m.hwmon(0, "smpro-hwmon.4.auto", files, name="smpro_hwmon")


def container(m):
    """Powercap inside Docker: the links of the class, into an empty folder."""
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 1, 24)
    m.write("sys/devices/virtual/powercap/.keep", "")
    for zone in ("intel-rapl", "intel-rapl/intel-rapl:0", "intel-rapl/intel-rapl:0/intel-rapl:0:0"):
        m.link(f"sys/class/powercap/{os.path.basename(zone)}", f"../../devices/virtual/powercap/{zone}")
    m.write("proc/1/cgroup", "0::/system.slice/docker-4f1c6ff0a1b2.scope\n")


AMD_GPU, INTEL_GPU = 0x1002, 0x8086
GIB = 1 << 30


def amd_desktop(m):
    """A Ryzen with integrated graphics, and an RX 7900 XTX, which the kernel found first."""
    m.cpuinfo("AuthenticAMD", "AMD Ryzen 9 7950X 16-Core Processor", 1, 16)
    m.control_type("intel-rapl")
    m.zone("intel-rapl:0", "package-0", 31032610987, AMD)
    m.zone("intel-rapl:0:0", "core", 5032610987, AMD)
    card(m, 0, "0000:03:00.0", "amdgpu", (AMD_GPU, 0x744c), {
        "gpu_busy_percent": 7, "mem_busy_percent": 2, "mem_info_vram_total": 24 * GIB - (1 << 24),
        "mem_info_vram_used": GIB // 2, "unique_id": "7d3a5f2c9b8e1046", "power/runtime_status": "active",
        "gpu_metrics": gpu_metrics((1, 3), temperature_edge=45, temperature_hotspot=52, average_gfx_activity=7,
                                   average_umc_activity=2, average_socket_power=25, energy_accumulator=65536 * 123456)},
         {"power1_average": 25000000, "power1_cap": 303000000, "power1_cap_min": 272000000, "power1_cap_max": 348000000,
          "power1_cap_default": 303000000, "power1_label": "PPT",
          "temp1_input": 45000, "temp1_label": "edge", "temp2_input": 52000, "temp2_label": "junction",
          "freq1_input": 1500000000, "freq1_label": "sclk", "freq2_input": 96000000, "freq2_label": "mclk"}, 1)
    card(m, 1, "0000:0f:00.0", "amdgpu", (AMD_GPU, 0x164e), {
        "gpu_busy_percent": 0, "mem_info_vram_total": GIB // 2, "mem_info_vram_used": GIB // 64,
        "gpu_metrics": gpu_metrics((2, 2), temperature_gfx=4100, average_socket_power=38000, average_gfx_activity=0)},
         {"power1_input": 38120000, "power1_label": "PPT", "temp1_input": 41000, "temp1_label": "edge",
          "freq1_input": 600000000}, 3)


def mi300_server(m):
    """Four MI300X: no edge temperature, instantaneous power, compute processes through KFD. The second one's counter is
    missing."""
    m.cpuinfo("AuthenticAMD", "AMD EPYC 9654 96-Core Processor", 2, 96)
    m.control_type("intel-rapl")
    for socket in range(2):
        m.zone(f"intel-rapl:{socket}", f"package-{socket}", 65032610000 + socket, AMD)
        kfd_node(m, socket, 0, cpu_cores_count=96, simd_count=0, location_id=0, domain=0)
    for i, bus in enumerate((0x0c, 0x22, 0x38, 0xb2)):
        values = {} if i == 1 else {"energy_accumulator": 65536 * (9000000 + i)}
        card(m, i + 1, f"0000:{bus:02x}:00.0", "amdgpu", (AMD_GPU, 0x74a1), {
            "gpu_busy_percent": 10 * i, "mem_busy_percent": i, "mem_info_vram_total": 192 * GIB - 4096,
            "mem_info_vram_used": (i + 1) * GIB, "unique_id": f"{0x6b1f09c7e2a4d350 + i:016x}", "numa_node": i // 2,
            "gpu_metrics": gpu_metrics((1, 5), temperature_hotspot=50 + i, curr_socket_power=140 + i, **values)},
             {"power1_input": (140 + i) * 1000000, "power1_cap": 750000000, "power1_cap_min": 0,
              "power1_cap_max": 750000000,
              "power1_cap_default": 750000000,
              "temp2_input": 50000 + 1000 * i, "temp2_label": "junction", "temp3_input": 44000}, 4 + i)
        kfd_node(m, 2 + i, 51000 + i, cpu_cores_count=0, simd_count=1216, location_id=bus << 8, domain=0)
    kfd_process(m, 4711, {51000: 0, 51001: 40 * GIB, 51002: 0, 51003: 0})
    m.link("sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd")


def arc(m, driver, hwmon):
    m.cpuinfo("GenuineIntel", "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", 1, 6)
    m.control_type("intel-rapl")
    m.zone("intel-rapl:0", "package-0", 84731228417, INTEL, limits(95))
    m.zone("intel-rapl:0:1", "uncore", 1093284412, INTEL)
    card(m, 0, "0000:00:02.0", "i915", (INTEL_GPU, 0x3e92))
    return card(m, 1, "0000:03:00.0", driver, (INTEL_GPU, 0xe20b if driver == "xe" else 0x56a0),
                {"power/runtime_status": "active"}, hwmon, 4)


def intel_arc(m):
    """An Arc B580 with xe, beside integrated graphics with i915, which RAPL meters."""
    arc(m, "xe", {"energy1_input": 912345678901, "energy1_label": "card", "energy2_input": 612345678901,
                  "energy2_label": "pkg", "power1_max": 190000000, "power1_rated_max": 190000000, "temp2_input": 48000,
                  "temp2_label": "pkg", "temp3_input": 56000, "temp3_label": "vram"})


def intel_arc_i915(m):
    """An Arc A770 with i915: a hwmon for the device and one for its tile."""
    device = arc(m, "i915", {"energy1_input": 512345678901, "power1_max": 0, "power1_rated_max": 225000000})
    for name, value in (("name", "i915_gt0"), ("energy1_input", "412345678901")):
        m.write(f"{device}/hwmon/hwmon2/{name}", f"{value}\n")
    m.link("sys/class/hwmon/hwmon2", "../../" + device.removeprefix("sys/") + "/hwmon/hwmon2")


def laptop_hybrid(m):
    """A Ryzen whose integrated graphics drive the display, and a suspended Radeon: reading its files would wake it."""
    m.cpuinfo("AuthenticAMD", "AMD Ryzen 9 6900HX with Radeon Graphics", 1, 8)
    m.control_type("intel-rapl")
    m.zone("intel-rapl:0", "package-0", 11032610987, AMD)
    m.zone("intel-rapl:0:0", "core", 2032610987, AMD)
    card(m, 1, "0000:03:00.0", "amdgpu", (AMD_GPU, 0x73ef), {
        "mem_info_vram_total": 8 * GIB, "unique_id": "59a1c3e07f2b4d68", "power/runtime_status": "suspended",
        "gpu_metrics": b"", "gpu_busy_percent": "read me and I wake"},
         {"power1_average": "read me and I wake", "power1_cap_max": 100000000}, 6)
    card(m, 0, "0000:e5:00.0", "amdgpu", (AMD_GPU, 0x1681), {
        "gpu_busy_percent": 3, "mem_info_vram_total": GIB // 2, "mem_info_vram_used": GIB // 4,
        "power/runtime_status": "active",
        "gpu_metrics": gpu_metrics((2, 2), temperature_gfx=4700, average_socket_power=9000)},
         {"power1_average": 9004000, "power1_label": "slowPPT", "temp1_input": 47000, "temp1_label": "edge"}, 5)


def nvidia_server(m):
    """Two sockets and four GPUs through NVML (nvml.cards, by hand): one without permission, one too old for an energy
    counter."""
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+", 2, 56)
    m.control_type("intel-rapl")
    for socket in range(2):
        m.zone(f"intel-rapl:{socket}", f"package-{socket}", 101223388712 + socket, INTEL, limits(350))
        m.zone(f"intel-rapl:{socket}:0", "dram", 31223388712 + socket, INTEL_DRAM)


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "..", "tests", "machines")
    for make in (desktop_intel, xeon_2s, xeon_dies, xeon_psys, epyc, epyc_dies, vm, one_unreadable, none_readable,
                 laptop_battery, grace, acpi_meter, jetson_orin, jetson_xavier, cray_ex, amd_energy_server, perf_only,
                 ampere_altra, container, amd_desktop, mi300_server, intel_arc, intel_arc_i915, laptop_hybrid,
                 nvidia_server):
        make(Machine(root, make.__name__.replace("_", "-")))


if __name__ == "__main__":
    main()
