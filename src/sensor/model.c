#include "sensor/sensor.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/container.h"
#include "sensor/internal.h"

#include <stdio.h>

/* Power of the CPU packages, estimated from the machine's load where no counter can be read. The model, its derivation and
 * its errors are in docs/model.md. */

// Used if the table has neither the CPU nor its rating.
static const double WATTS_PER_X86_CORE = 6, WATTS_PER_ARM_CORE = 3;
/* Power of four machines as fractions of their rating, by load (docs/model.md): about a tenth when nearly idle, half to
 * nearly all under full load. 95 % of the points lie within 64 % of the line between these two values. */
static const double IDLE_SHARE = 0.1, FULL_SHARE = 0.9;
static const double ERROR_RATED = 0.65, ERROR_PER_CORE = 0.8;
/* The load is read from counters that advance in ticks of 10 ms. It is therefore computed over at least this much CPU time
 * per CPU, and held in between. */
static const int64_t LOAD_SPAN_NS = 20 * NS_PER_MS;

// Only virtual machines that give every CPU a socket have more; the last entry then covers the rest.
enum { SOCKETS_MAX = 16 };

struct socket {
	int id, cpus, cores; // cores: 0 if unknown
	double idle_w, full_w;
};

struct machine {
	char model_name[96];
	bool is_virtual, is_arm;
	int n_cpus;
	struct socket sockets[SOCKETS_MAX];
	size_t n_sockets;
};

struct model {
	struct machine machine;
	struct domain domains[SOCKETS_MAX];
	size_t n;
	bool primed; // the counters below are valid
	int64_t busy_ns, idle_ns;
	double load; // 0..1; NaN before the second reading
};

struct cpu { // one block of /proc/cpuinfo
	int socket, cores;
	bool seen;
};

static void count_cpu(struct machine *machine, struct cpu *cpu)
{
	if (!cpu->seen)
		return;
	size_t i = 0;
	while (i < machine->n_sockets && machine->sockets[i].id != cpu->socket)
		i++;
	if (i == SOCKETS_MAX)
		i--;
	else if (i == machine->n_sockets)
		machine->sockets[machine->n_sockets++].id = cpu->socket;
	machine->sockets[i].cpus++;
	if (cpu->cores > machine->sockets[i].cores)
		machine->sockets[i].cores = cpu->cores;
	machine->n_cpus++;
	*cpu = (struct cpu){0};
}

static int small_number(const char *text)
{
	uint64_t value;
	return num_parse_u64(text, &value) == 0 && value < 100000 ? (int)value : 0;
}

static void take_line(struct machine *machine, struct cpu *cpu, const char *key, const char *value)
{
	if (strcmp(key, "processor") == 0) {
		count_cpu(machine, cpu);
		cpu->seen = true;
	} else if (strcmp(key, "physical id") == 0) {
		cpu->socket = small_number(value);
	} else if (strcmp(key, "cpu cores") == 0) {
		cpu->cores = small_number(value);
	} else if (strcmp(key, "model name") == 0) {
		text_copy(machine->model_name, sizeof(machine->model_name), value);
	} else if (strcmp(key, "CPU implementer") == 0) {
		machine->is_arm = true;
	} else if (strcmp(key, "flags") == 0) {
		machine->is_virtual = strstr(value, " hypervisor") != NULL;
	}
}

// Splits "physical id\t: 0" after the key, in place; NULL if the line has no colon.
static const char *split(char *line)
{
	char *colon = strchr(line, ':');
	if (colon == NULL)
		return NULL;
	char *end = colon;
	while (end > line && (end[-1] == '\t' || end[-1] == ' '))
		end--;
	*end = '\0';
	return colon + 1 + strspn(colon + 1, " \t");
}

static void parse_cpuinfo(char *text, struct machine *ret_machine)
{
	struct cpu cpu = {0};
	for (char *save, *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		const char *value = split(line);
		if (value != NULL)
			take_line(ret_machine, &cpu, line, value);
	}
	count_cpu(ret_machine, &cpu);
}

static void rate(const struct machine *machine, struct socket *socket, struct domain *domain)
{
	struct cpu_power rated;
	int cores = socket->cores > 0 ? socket->cores : socket->cpus;
	bool is_rated = cpu_power_find(machine->model_name, &rated);
	double rated_w = cores * (machine->is_arm ? WATTS_PER_ARM_CORE : WATTS_PER_X86_CORE);
	// A virtual machine counts only its own cores of a socket; the neighbours' power is excluded.
	if (is_rated)
		rated_w = rated.tdp_w * (machine->is_virtual ? fmin(1, (double)cores / rated.cores) : 1);
	socket->full_w = rated_w * FULL_SHARE;
	socket->idle_w = rated_w * IDLE_SHARE;
	domain->relative_error = is_rated && !machine->is_virtual ? ERROR_RATED : ERROR_PER_CORE;
}

static void describe(const struct machine *machine, struct socket *socket, struct domain *domain)
{
	*domain = (struct domain){
		.kind = DOMAIN_PACKAGE,
		.index = socket->id,
		.provenance = PROVENANCE_ESTIMATED,
		.readable = true,
		.used = true,
	};
	snprintf(domain->name, sizeof(domain->name), "package-%d", socket->id);
	text_copy(domain->device, sizeof(domain->device),
		machine->model_name[0] != '\0' ? machine->model_name : "unknown CPU");
	rate(machine, socket, domain);
}

// Reports once, in the run's summary, that an estimate is used because of a missing mount.
static void explain_container(struct model *model, const struct wattle_env *env)
{
	const char *why, *remedy;
	if (model->n > 0 && !model->machine.is_arm && container_hides_powercap(env, &why, &remedy))
		snprintf(model->domains[0].note, sizeof(model->domains[0].note), "%s: %s", why, remedy);
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct model *model = state;
	model->load = (double)NAN;
	wattle_cleanup_free char *text = NULL;
	size_t size;
	if (file_read_all_in(env->procfs_fd, "cpuinfo", 16 << 20, &text, &size) == 0)
		parse_cpuinfo(text, &model->machine);
	model->n = model->machine.n_sockets;
	for (size_t i = 0; i < model->n; i++)
		describe(&model->machine, &model->machine.sockets[i], &model->domains[i]);
	explain_container(model, env);
	return 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct model *model = state;
	*ret_count = model->n;
	return model->domains;
}

static void update_load(struct model *model, const struct sensor_context *context)
{
	if (!value_ok(context->system_busy_ns) || !value_ok(context->system_idle_ns)) {
		model->primed = false;
		model->load = (double)NAN;
		return;
	}
	int64_t busy_ns = context->system_busy_ns - model->busy_ns;
	int64_t idle_ns = context->system_idle_ns - model->idle_ns;
	int64_t wanted_ns = isnan(model->load) ? 1 : LOAD_SPAN_NS * model->machine.n_cpus;
	if (model->primed && busy_ns + idle_ns < wanted_ns)
		return;
	// idle and iowait are known to step back by a tick occasionally; the load must stay in its range.
	if (model->primed)
		model->load = fmin(1, fmax(0, (double)busy_ns / (double)(busy_ns + idle_ns)));
	model->primed = true;
	model->busy_ns = context->system_busy_ns;
	model->idle_ns = context->system_idle_ns;
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct model *model = state;
	update_load(model, context);
	if (isnan(model->load))
		return;
	for (size_t i = 0; i < model->n; i++) {
		const struct socket *socket = &model->machine.sockets[i];
		double power_w = socket->idle_w + (socket->full_w - socket->idle_w) * model->load;
		if (model->domains[i].used)
			rows[i][DEVICE_POWER] = llround(power_w * 1e3);
	}
}

static void close_sensor(void *state)
{
	// The state struct holds everything; nothing to release.
}

const struct sensor_ops sensor_model = {
	.name = "model",
	.state_size = sizeof(struct model),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
