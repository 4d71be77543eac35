#include "cli/sensors.h"

#include "base/file.h"
#include "base/util.h"
#include "sensor/container.h"

#include <string.h>

/* If no powercap zone exists, the reason follows from the kind of machine. */

struct cpu_info {
	bool is_x86, is_virtual;
};

static struct cpu_info read_cpu(const struct wattle_env *env)
{
	char text[8192]; // the lines of the first CPU
	if (file_read_in(env->procfs_fd, "cpuinfo", text, sizeof(text)) < 0)
		return (struct cpu_info){0};
	const char *flags = strstr(text, "\nflags");
	size_t length = flags != NULL ? strcspn(flags + 1, "\n") + 1 : 0;
	const char *hypervisor = flags != NULL ? strstr(flags, " hypervisor") : NULL;
	return (struct cpu_info){
		.is_x86 = strstr(text, "GenuineIntel") != NULL || strstr(text, "AuthenticAMD") != NULL ||
			strstr(text, "HygonGenuine") != NULL,
		.is_virtual = hypervisor != NULL && hypervisor < flags + length,
	};
}

bool sensors_report_explain_powercap(const struct wattle_env *env, struct domain *ret_domain)
{
	struct cpu_info cpu = read_cpu(env);
	if (!cpu.is_x86)
		return false;
	struct domain domain = {.name = "package-0", .kind = DOMAIN_PACKAGE, .provenance = PROVENANCE_MEASURED};
	const char *why, *remedy;
	if (container_hides_powercap(env, &why, &remedy)) {
		// Has a remedy that may help even in a virtual machine, so it comes first.
	} else if (cpu.is_virtual) {
		why = "a virtual machine: its hypervisor passes no energy counters through";
		remedy = "";
	} else {
		why = "no zone in /sys/class/powercap: the kernel's RAPL driver is not loaded";
		remedy = "sudo modprobe intel_rapl_msr";
	}
	text_copy(domain.why, sizeof(domain.why), why);
	text_copy(domain.remedy, sizeof(domain.remedy), remedy);
	*ret_domain = domain;
	return true;
}
