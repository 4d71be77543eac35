#include "sensor/internal.h"

#include "base/file.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/container.h"
#include "sensor/sensor.h"
#include "sensor/sysfs.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Parses "0x1f" or "31"; *at then points behind the number.
static bool read_number(const char **at, uint64_t *ret_value)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret_value = strtoull(*at, &end, 0);
	*at = end;
	return errno == 0;
}

static uint64_t *find_word(struct perf_event_code *code, const char *name, size_t length)
{
	const struct {
		const char *name;
		uint64_t *word;
	} words[] = {{"config", &code->config}, {"config1", &code->config1}, {"config2", &code->config2}};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].name) == length && strncmp(words[i].name, name, length) == 0)
			return words[i].word;
	return NULL;
}

/* Distributes the bits of the value, lowest first, over the ranges of the format: "config:0-7,32-35". */
static int put_bits(const char *format, uint64_t value, struct perf_event_code *code)
{
	const char *at = strchr(format, ':');
	uint64_t *word = at != NULL ? find_word(code, format, (size_t)(at - format)) : NULL;
	if (word == NULL)
		return -EINVAL;
	do {
		uint64_t low, high;
		at++;
		if (!read_number(&at, &low))
			return -EINVAL;
		high = low;
		if (*at == '-' && (at++, !read_number(&at, &high)))
			return -EINVAL;
		if (high < low || high > 63)
			return -EINVAL;
		uint64_t bits = high - low + 1;
		uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
		*word |= (value & mask) << low;
		value = bits == 64 ? 0 : value >> bits;
	} while (*at == ',');
	return value == 0 ? 0 : -EINVAL;
}

static int put_term(int root_fd, const char *folder, const char *term, uint64_t value, struct perf_event_code *code)
{
	char path[256], format[64];
	if ((size_t)snprintf(path, sizeof(path), "%s/format/%s", folder, term) >= sizeof(path))
		return -EINVAL;
	if (strchr(term, '/') == NULL && file_read_line_in(root_fd, path, format, sizeof(format)) > 0)
		return put_bits(format, value, code);
	// A whole word can be named directly: "config1=0x3".
	uint64_t *word = find_word(code, term, strlen(term));
	if (word == NULL)
		return -EINVAL;
	*word = value;
	return 0;
}

int perf_pmu_encode(int root_fd, const char *folder, const char *terms, struct perf_event_code *ret_code)
{
	struct perf_event_code code = {0};
	const char *at = terms;
	for (;;) {
		char term[48];
		uint64_t value = 1; // a term without a value is a flag
		size_t length = strcspn(at, "=,");
		if (length == 0 || length >= sizeof(term))
			return -EINVAL;
		memcpy(term, at, length);
		term[length] = '\0';
		at += length;
		if (*at == '=' && (at++, !read_number(&at, &value)))
			return -EINVAL;
		int r = put_term(root_fd, folder, term, value, &code);
		if (r < 0)
			return r;
		if (*at == '\0')
			break;
		if (*at++ != ',')
			return -EINVAL;
	}
	*ret_code = code;
	return 0;
}

int perf_pmu_read_scale(int root_fd, const char *folder, const char *event, double *ret_joules)
{
	char path[256], text[64];
	const char *end;
	snprintf(path, sizeof(path), "%s/events/%s.unit", folder, event);
	if (file_read_line_in(root_fd, path, text, sizeof(text)) <= 0 || strcmp(text, "Joules") != 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/events/%s.scale", folder, event);
	if (file_read_line_in(root_fd, path, text, sizeof(text)) <= 0)
		return -EINVAL;
	double joules = num_read_double(text, &end);
	if (end == text || *end != '\0' || !(joules > 0) || !isfinite(joules))
		return -EINVAL;
	*ret_joules = joules;
	return 0;
}

/* The RAPL counters through perf's `power` PMU: one open per event and per CPU of its cpumask, 64-bit counts that the kernel
 * extends itself, and no file that root would have to make readable. Used if powercap's files can't be read. (`power_core` of
 * newer AMD kernels, one counter per core, is ignored: the package includes all cores.) */

static const char folder[] = "bus/event_source/devices/power";

enum { LOCATIONS_MAX = 256 };

static const struct event {
	const char *name;
	enum domain_kind kind;
} events[] = {
	{"energy-pkg", DOMAIN_PACKAGE}, // first, because cores and gpu are inside it
	{"energy-cores", DOMAIN_CORE},
	{"energy-gpu", DOMAIN_UNCORE},
	{"energy-ram", DOMAIN_DRAM},
	{"energy-psys", DOMAIN_PSYS},
};

struct counter_location { // a CPU of the cpumask, representing its package or die
	int cpu, package, die;
	bool shares_package; // together with other CPUs of the mask
	int same_package;    // index of an earlier place with the same counter; -1: none
};

struct counter {
	int fd; // owned; -1: access denied
	double joules_per_count;
};

// counters[i] feeds domains[i].
struct perf {
	struct domain *domains;   // owned
	struct counter *counters; // owned
	size_t n;
};

static size_t find_locations(const struct wattle_env *env, struct counter_location *locations)
{
	char path[96], text[4096];
	int cpus[LOCATIONS_MAX];
	snprintf(path, sizeof(path), "%s/cpumask", folder);
	ssize_t length = file_read_line_in(env->sysfs_fd, path, text, sizeof(text));
	size_t n = length > 0 ? cpu_list_parse(text, cpus, LOCATIONS_MAX) : 0;
	bool dies_share = cpu_dies_share_counter(env);
	for (size_t i = 0; i < n; i++) {
		struct cpu_location at = cpu_location_read(env->sysfs_fd, cpus[i]);
		struct counter_location *location = &locations[i];
		// If the kernel does not report packages, the mask has one CPU per package, in order.
		*location = (struct counter_location){cpus[i], at.package >= 0 ? at.package : (int)i, at.die, false,
			-1};
		int die = 0;
		for (size_t k = 0; k < i; k++) {
			if (locations[k].package != location->package)
				continue;
			locations[k].shares_package = location->shares_package = !dies_share;
			location->same_package = dies_share && location->same_package < 0 ? (int)k
											  : location->same_package;
			die++;
		}
		location->die = location->die >= 0 ? location->die : die;
	}
	return n;
}

static void name_domain(const struct counter_location *location, struct domain *d, bool first_psys)
{
	char at[32];
	if (location->shares_package)
		snprintf(at, sizeof(at), "%d-die-%d", location->package, location->die);
	else
		snprintf(at, sizeof(at), "%d", location->package);
	if (d->kind == DOMAIN_PSYS && first_psys)
		text_copy(d->name, sizeof(d->name), "psys");
	else
		snprintf(d->name, sizeof(d->name), "%s-%s", domain_kind_name(d->kind), at);
	if (d->kind == DOMAIN_CORE || d->kind == DOMAIN_UNCORE)
		snprintf(d->inside, sizeof(d->inside), "package-%s", at);
}

/* System-wide counting requires a capability, or a setting of at most 0. Debian and Ubuntu have levels above 2, at which
 * CAP_PERFMON is not enough. */
static void explain_refusal(const struct wattle_env *env, struct domain *d)
{
	char text[32];
	ssize_t length = file_read_line_in(env->procfs_fd, "sys/kernel/perf_event_paranoid", text, sizeof(text));
	int64_t paranoid = 2; // kernel default
	bool known = length > 0 && num_parse_i64(text, &paranoid) == 0;
	const char *sysctl = "sudo sysctl kernel.perf_event_paranoid=0";
	if (known && paranoid <= 0) {
		domain_leave_out(d, "perf_event_paranoid is %lld, but perf_event_open is refused: a system call filter (seccomp) blocks it",
			(long long)paranoid);
		text_copy(d->remedy, sizeof(d->remedy), container_perf_remedy(container_detect(env)));
	} else if (paranoid >= 3) {
		domain_leave_out(d, "perf_event_paranoid is %lld, which requires CAP_SYS_ADMIN", (long long)paranoid);
		text_copy(d->remedy, sizeof(d->remedy), sysctl);
	} else {
		domain_leave_out(d, "perf_event_paranoid is %lld, which requires CAP_PERFMON", (long long)paranoid);
		snprintf(d->remedy, sizeof(d->remedy), "sudo setcap cap_perfmon+ep $(command -v wattle) # or: %s",
			sysctl);
	}
}

static void open_event(const struct wattle_env *env, uint32_t type, const struct perf_event_code *code, int cpu,
	struct counter *counter, struct domain *d)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = code->config,
		.config1 = code->config1,
		.config2 = code->config2,
	};
	counter->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	d->readable = d->used = counter->fd >= 0;
	if (counter->fd >= 0)
		return;
	if (errno == EACCES || errno == EPERM)
		explain_refusal(env, d);
	else if (errno == ENOSYS)
		domain_leave_out(d, "perf_event_open is not available: the kernel lacks it or a system call filter (seccomp) blocks it");
	else
		domain_leave_out(d, "perf_event_open on CPU %d: %s", cpu, strerror(errno));
}

static void add_event(struct perf *perf, const struct wattle_env *env, uint32_t type, const struct event *event,
	const struct counter_location *location)
{
	char path[128], terms[256];
	snprintf(path, sizeof(path), "%s/events/%s", folder, event->name);
	if (file_read_line_in(env->sysfs_fd, path, terms, sizeof(terms)) <= 0)
		return;
	struct domain *d = &perf->domains[perf->n];
	struct counter *counter = &perf->counters[perf->n++];
	*counter = (struct counter){.fd = -1};
	*d = (struct domain){
		.kind = event->kind,
		.index = location->package,
		.provenance = PROVENANCE_MEASURED,
		.has_energy = true,
	};
	name_domain(location, d, domain_find_used(perf->domains, perf->n - 1, "psys") == NULL);
	snprintf(d->device, sizeof(d->device), "power/%s/ on CPU %d", event->name, location->cpu);
	struct perf_event_code code;
	if (perf_pmu_encode(env->sysfs_fd, folder, terms, &code) < 0)
		domain_leave_out(d, "can't parse events/%s", event->name);
	else if (perf_pmu_read_scale(env->sysfs_fd, folder, event->name, &counter->joules_per_count) < 0)
		domain_leave_out(d, "events/%s has no scale in joules", event->name);
	else if (location->same_package >= 0)
		domain_leave_out(d, "another CPU of the same package reads the same counter");
	else
		open_event(env, type, &code, location->cpu, counter, d);
}

static uint64_t read_count(const struct counter *counter)
{
	uint64_t count;
	return read(counter->fd, &count, sizeof(count)) == (ssize_t)sizeof(count) ? count : 0;
}

/* A guest kernel offers the PMU if the hypervisor exposes the register, and most hypervisors return a constant 0. A real
 * counter changes every millisecond; on physical hardware no check is needed. (psys of servers counts whole joules and may
 * take longer: `wattle sensors` waits for it, a run does not.) */
static void warn_in_guest(struct perf *perf, const struct wattle_env *env, bool describe_only)
{
	const int rounds = describe_only ? 30 : 3;
	const struct timespec pause = {.tv_nsec = NS_PER_MS};
	if (perf->n == 0 || !cpu_is_virtual(env))
		return;
	bool moved = false;
	for (int round = 0; round < rounds && !moved; round++) {
		if (round > 0)
			nanosleep(&pause, NULL);
		for (size_t i = 0; i < perf->n; i++)
			moved |= perf->domains[i].used && read_count(&perf->counters[i]) > 0;
	}
	for (size_t i = 0; i < perf->n && !moved; i++) {
		struct domain *d = &perf->domains[i];
		if (!d->used)
			continue;
		domain_leave_out(d, "the counter does not change: the hypervisor does not provide it to this guest");
		d->readable = false;
	}
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct perf *perf = state;
	struct counter_location locations[LOCATIONS_MAX];
	char path[96];
	uint64_t type;
	snprintf(path, sizeof(path), "%s/type", folder);
	if (file_read_u64_in(env->sysfs_fd, path, &type) < 0 || type > UINT32_MAX)
		return 0;
	size_t n_locations = find_locations(env, locations);
	perf->domains = calloc_array(n_locations * ARRAY_SIZE(events), sizeof(perf->domains[0]));
	perf->counters = calloc_array(n_locations * ARRAY_SIZE(events), sizeof(perf->counters[0]));
	if (perf->domains == NULL || perf->counters == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for the events of %s/%s", env->sysfs, folder);
	for (size_t i = 0; i < n_locations; i++)
		for (size_t k = 0; k < ARRAY_SIZE(events); k++)
			add_event(perf, env, (uint32_t)type, &events[k], &locations[i]);
	warn_in_guest(perf, env, options->describe_only);
	domains_put_packages_inside_psys(perf->domains, perf->n);
	return 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct perf *perf = state;
	*ret_count = perf->n;
	return perf->domains;
}

/* The product is computed with a 64-bit mantissa (x86; more elsewhere), so that large counts keep their last µJ: a double
 * would advance in steps after 2^53. A CPU that went offline reads as end of file. */
static int64_t read_energy_uj(const struct counter *counter)
{
	uint64_t count;
	if (read(counter->fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return VALUE_MISSING;
	long double energy_uj = (long double)count * counter->joules_per_count * 1e6L;
	return energy_uj < 0x1p63L ? (int64_t)energy_uj : VALUE_MISSING;
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	const struct perf *perf = state;
	for (size_t i = 0; i < perf->n; i++)
		if (perf->domains[i].used)
			rows[i][DEVICE_ENERGY_RAW] = read_energy_uj(&perf->counters[i]);
}

static void close_sensor(void *state)
{
	struct perf *perf = state;
	for (size_t i = 0; i < perf->n; i++)
		if (perf->counters[i].fd >= 0)
			close(perf->counters[i].fd);
	free(perf->domains);
	free(perf->counters);
	*perf = (struct perf){0};
}

const struct sensor_ops sensor_perf = {
	.name = "perf",
	.state_size = sizeof(struct perf),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
