"""Graphics cards for make-machines.py: the folders of class/drm, and amdgpu's binary tables.

Field by field after struct gpu_metrics_v* of the kernel's kgd_pp_interface.h: natural alignment, little-endian, all
bits set where the chip fills nothing.
"""
import struct

U16, U32, U64 = "H", "I", "Q"
HBM, XGMI, GFX_CLOCKS, CLOCKS, VCN, JPEG = 4, 8, 8, 4, 4, 32

V1_3 = [(U16, name) for name in (
    "temperature_edge", "temperature_hotspot", "temperature_mem", "temperature_vrgfx", "temperature_vrsoc",
    "temperature_vrmem", "average_gfx_activity", "average_umc_activity", "average_mm_activity", "average_socket_power")]
V1_3 += [(U64, "energy_accumulator"), (U64, "system_clock_counter")]
V1_3 += [(U16, f"average_{clock}_frequency") for clock in ("gfxclk", "socclk", "uclk", "vclk0",
                                                           "dclk0", "vclk1", "dclk1")]
V1_3 += [(U16, f"current_{clock}") for clock in ("gfxclk", "socclk", "uclk", "vclk0", "dclk0", "vclk1", "dclk1")]
V1_3 += [(U32, "throttle_status"), (U16, "current_fan_speed"), (U16, "pcie_link_width"), (U16, "pcie_link_speed"),
         (U16, "padding"), (U32, "gfx_activity_acc"), (U32, "mem_activity_acc"), (U16, "temperature_hbm", HBM),
         (U64, "firmware_timestamp"), (U16, "voltage_soc"), (U16, "voltage_gfx"), (U16, "voltage_mem"),
         (U16, "padding1"), (U64, "indep_throttle_status")]

V1_5 = [(U16, name) for name in ("temperature_hotspot", "temperature_mem", "temperature_vrsoc", "curr_socket_power",
                                 "average_gfx_activity", "average_umc_activity")]
V1_5 += [(U16, "vcn_activity", VCN), (U16, "jpeg_activity", JPEG), (U64, "energy_accumulator"),
         (U64, "system_clock_counter"), (U32, "throttle_status"), (U32, "gfxclk_lock_status"), (U16, "pcie_link_width"),
         (U16, "pcie_link_speed"), (U16, "xgmi_link_width"), (U16, "xgmi_link_speed"), (U32, "gfx_activity_acc"),
         (U32, "mem_activity_acc")]
V1_5 += [(U64, f"pcie_{name}") for name in ("bandwidth_acc", "bandwidth_inst", "l0_to_recov_count_acc",
                                            "replay_count_acc", "replay_rover_count_acc")]
V1_5 += [(U32, "pcie_nak_sent_count_acc"), (U32, "pcie_nak_rcvd_count_acc"), (U64, "xgmi_read_data_acc", XGMI),
         (U64, "xgmi_write_data_acc", XGMI), (U64, "firmware_timestamp"), (U16, "current_gfxclk", GFX_CLOCKS),
         (U16, "current_socclk", CLOCKS), (U16, "current_vclk0", CLOCKS), (U16, "current_dclk0", CLOCKS),
         (U16, "current_uclk"), (U16, "padding")]

V2_2 = [(U16, "temperature_gfx"), (U16, "temperature_soc"), (U16, "temperature_core", 8), (U16, "temperature_l3", 2),
        (U16, "average_gfx_activity"), (U16, "average_mm_activity"), (U64, "system_clock_counter")]
V2_2 += [(U16, f"average_{part}_power") for part in ("socket", "cpu", "soc", "gfx")] + [(U16, "average_core_power", 8)]
V2_2 += [(U16, f"average_{clock}_frequency") for clock in ("gfxclk", "socclk", "uclk", "fclk", "vclk", "dclk")]
V2_2 += [(U16, f"current_{clock}") for clock in ("gfxclk", "socclk", "uclk", "fclk", "vclk", "dclk")]
V2_2 += [(U16, "current_coreclk", 8), (U16, "current_l3clk", 2), (U32, "throttle_status"), (U16, "fan_pwm"),
         (U16, "padding", 3), (U64, "indep_throttle_status")]

LAYOUTS = {(1, 3): V1_3, (1, 5): V1_5, (2, 2): V2_2}
SIZES = {(1, 3): 120, (1, 5): 360, (2, 2): 128}


def gpu_metrics(revision, **values):
    """The bytes of a table; fields that are not named have all bits set."""
    body = b""
    for kind, name, *count in LAYOUTS[revision]:
        size = struct.calcsize(kind)
        body += b"\xff" * (-(len(body) + 4) % size)
        value = values.pop(name, (1 << 8 * size) - 1)
        body += struct.pack("<" + kind, value) * (count[0] if count else 1)
    body += b"\xff" * (-(len(body) + 4) % 8)
    assert not values, f"no such field: {values}"
    assert len(body) + 4 == SIZES[revision], f"{revision} has {len(body) + 4} bytes"
    return struct.pack("<HBB", len(body) + 4, *revision) + body


def card(m, number, pci, driver, ids, files=None, hwmon=None, hwmon_number=0):
    """class/drm/cardN links to the PCI device's folder, as do its connectors' and render node's."""
    root = f"pci{pci[:7]}"
    device = f"sys/devices/{root}/{pci}"
    vendor, product = ids
    m.write(f"{device}/vendor", f"{vendor:#06x}\n")
    m.write(f"{device}/device", f"{product:#06x}\n")
    m.write(f"{device}/class", "0x030000\n")
    m.write(f"{device}/uevent",
            f"DRIVER={driver}\nPCI_CLASS=30000\nPCI_ID={vendor:04X}:{product:04X}\nPCI_SLOT_NAME={pci}\n")
    for name, value in (files or {}).items():
        if isinstance(value, bytes):
            m.write_bytes(f"{device}/{name}", value)
        else:
            m.write(f"{device}/{name}", f"{value}\n")
    for name, value in ({"name": driver, **hwmon} if hwmon else {}).items():
        m.write(f"{device}/hwmon/hwmon{hwmon_number}/{name}", f"{value}\n")
    if hwmon:
        m.link(f"{device}/hwmon/hwmon{hwmon_number}/device", f"../../../{pci}")
        m.link(f"sys/class/hwmon/hwmon{hwmon_number}", f"../../devices/{root}/{pci}/hwmon/hwmon{hwmon_number}")
    for node in (f"card{number}", f"card{number}-DP-1", f"renderD{128 + number}"):
        inside = f"drm/card{number}/{node}" if "-" in node else f"drm/{node}"
        m.write(f"{device}/{inside}/dev", f"226:{number}\n")
        m.link(f"{device}/{inside}/device", f"../../../{pci}" if "-" not in node else f"../../card{number}")
        m.link(f"sys/class/drm/{node}", f"../../devices/{root}/{pci}/{inside}")
    return device


def kfd_node(m, number, gpu_id, **properties):
    folder = f"sys/devices/virtual/kfd/kfd/topology/nodes/{number}"
    m.write(f"{folder}/gpu_id", f"{gpu_id}\n")
    m.write(f"{folder}/properties", "".join(f"{name} {value}\n" for name, value in properties.items()))


def kfd_process(m, pid, vram_of):
    for gpu_id, size in vram_of.items():
        m.write(f"sys/devices/virtual/kfd/kfd/proc/{pid}/vram_{gpu_id}", f"{size}\n")
        m.write(f"sys/devices/virtual/kfd/kfd/proc/{pid}/stats_{gpu_id}/cu_occupancy", "0\n")
