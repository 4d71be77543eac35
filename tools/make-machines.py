#!/usr/bin/env python3
"""Writes tests/machines/*/{sys,proc}: the parts of /sys and /proc that the sensors read, laid out as the kernel does.

The real folders are nested below devices/virtual/powercap; class/powercap has a flat link to each of them, at every
depth. Run it from the root of the project after a change here and look at the difference; `expected` files are
written by hand.
"""
import os
import shutil
import sys

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

    def link(self, path, target):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)

    def control_type(self, name):
        self.write(f"sys/devices/virtual/powercap/{name}/enabled", "1\n")
        self.link(f"sys/class/powercap/{name}", f"../../devices/virtual/powercap/{name}")

    def zone(self, id, name, energy_uj, range_uj, limits=()):
        """intel-rapl:0:1 lies in intel-rapl/intel-rapl:0/intel-rapl:0:1."""
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
        for i, (label, limit_uw) in enumerate(limits):
            self.write(f"sys/{folder}/constraint_{i}_name", label + "\n")
            self.write(f"sys/{folder}/constraint_{i}_power_limit_uw", f"{limit_uw}\n")
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


def limits(watts):
    return (("long_term", watts * 1000000), ("short_term", watts * 1250000))


def desktop_intel(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", 1, 6)
    m.control_type("intel-rapl")
    m.control_type("intel-rapl-mmio")
    m.zone("intel-rapl:0", "package-0", 84731228417, INTEL, limits(95))
    m.zone("intel-rapl:0:0", "core", 41923774512, INTEL)
    m.zone("intel-rapl:0:1", "uncore", 1093284412, INTEL)
    m.zone("intel-rapl:0:2", "dram", 9120037771, INTEL)
    m.zone("intel-rapl:1", "psys", 190222388114, INTEL, limits(0))
    m.zone("intel-rapl-mmio:0", "package-0", 84731228417, INTEL, limits(125))


def xeon_2s(m):
    m.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 2, 24)
    m.control_type("intel-rapl")
    # Registered in this order on a machine whose second socket came up first: the number of a zone means nothing.
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


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "..", "tests", "machines")
    for make in (desktop_intel, xeon_2s, xeon_dies, xeon_psys, epyc, epyc_dies, vm, one_unreadable, none_readable):
        make(Machine(root, make.__name__.replace("_", "-")))


if __name__ == "__main__":
    main()
