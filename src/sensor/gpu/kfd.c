#include "sensor/gpu/drm.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/gpu/pid_match.h"

#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>

enum { CARDS_MAX = 64, PROCESSES_MAX = 256 };
static const int64_t READ_EVERY_NS = NS_PER_S / 4;
static const char processes_path[] = "class/kfd/kfd/proc";

struct kfd {
	const struct wattle_env *env; // borrowed
	size_t n_cards;
	uint64_t ids[CARDS_MAX]; // KFD's id of each card; 0: none
	struct kfd_use uses[CARDS_MAX];
	int64_t read_ns;
	struct pid_match match;
	struct on_card {
		size_t card;
		struct kfd_process process;
	} on_cards[PROCESSES_MAX];
	size_t n_on_cards;
};

/* ---- open ---- */

// Finds a line such as "location_id 768" in a node's properties.
static bool read_property(const char *text, const char *name, uint64_t *ret_value)
{
	char digits[24];
	size_t length = strlen(name);
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) != 0 || line[length] != ' ')
			continue;
		snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
		return num_parse_u64(digits, ret_value) == 0;
	}
	return false;
}

// Builds the PCI address of a node from its packed bus, device and function number.
static bool read_address(const struct wattle_env *env, const char *node, char *out, size_t size)
{
	char path[128], text[4096];
	uint64_t location, domain = 0;
	snprintf(path, sizeof(path), "class/kfd/kfd/topology/nodes/%s/properties", node);
	if (file_read_in(env->sysfs_fd, path, text, sizeof(text)) <= 0 ||
		!read_property(text, "location_id", &location))
		return false;
	read_property(text, "domain", &domain);
	snprintf(out, size, "%04x:%02x:%02x.%x", (unsigned int)domain, (unsigned int)(location >> 8 & 0xff),
		(unsigned int)(location >> 3 & 0x1f), (unsigned int)(location & 7));
	return true;
}

static void match_node(struct kfd *kfd, const char *node, const char *const *pci)
{
	char path[128], address[32];
	uint64_t id;
	snprintf(path, sizeof(path), "class/kfd/kfd/topology/nodes/%s/gpu_id", node);
	if (file_read_u64_in(kfd->env->sysfs_fd, path, &id) < 0 || id == 0) // 0: a CPU
		return;
	if (!read_address(kfd->env, node, address, sizeof(address)))
		return;
	for (size_t i = 0; i < kfd->n_cards; i++)
		if (kfd->ids[i] == 0 && strcasecmp(pci[i], address) == 0)
			kfd->ids[i] = id;
}

struct kfd *kfd_new(const struct wattle_env *env, const char *const *pci, size_t n)
{
	struct folder nodes;
	folder_list(env->sysfs_fd, "class/kfd/kfd/topology/nodes", "", &nodes);
	struct kfd *kfd = nodes.n > 0 ? calloc(1, sizeof(*kfd)) : NULL;
	if (kfd != NULL && pid_match_open(&kfd->match, env) < 0) {
		free(kfd);
		kfd = NULL;
	}
	if (kfd != NULL) {
		kfd->env = env;
		kfd->n_cards = n < CARDS_MAX ? n : CARDS_MAX;
		kfd->read_ns = INT64_MIN / 2;
		for (size_t i = 0; i < nodes.n; i++)
			match_node(kfd, nodes.names[i], pci);
	}
	folder_finish(&nodes);
	return kfd;
}

void kfd_free(struct kfd *kfd)
{
	if (kfd != NULL)
		pid_match_close(&kfd->match);
	free(kfd);
}

bool kfd_has(const struct kfd *kfd, size_t card)
{
	return kfd != NULL && card < kfd->n_cards && kfd->ids[card] != 0;
}

/* ---- read ---- */

// processes/PID/PREFIX<id>SUFFIX
static int64_t read_of(const struct kfd *kfd, uint32_t process, const char *prefix, uint64_t id, const char *suffix)
{
	char path[160];
	uint64_t value;
	snprintf(path, sizeof(path), "%s/%u/%s%llu%s", processes_path, process, prefix, (unsigned long long)id, suffix);
	int r = file_read_u64_in(kfd->env->sysfs_fd, path, &value);
	return r == 0 && value <= INT64_MAX ? (int64_t)value : VALUE_MISSING;
}

static void add(int64_t *sum, int64_t value)
{
	*sum = value_ok(*sum) && value_ok(value) ? *sum + value : VALUE_MISSING;
}

// KFD has one file per GPU and process, even if the process holds nothing on the GPU.
static void add_process(struct kfd *kfd, size_t card, uint32_t number, enum pid_side side, bool is_main)
{
	struct kfd_use *use = &kfd->uses[card];
	int64_t bytes = read_of(kfd, number, "vram_", kfd->ids[card], "");
	if (!(bytes > 0))
		return;
	int64_t units = read_of(kfd, number, "stats_", kfd->ids[card], "/cu_occupancy");
	if (kfd->n_on_cards < PROCESSES_MAX)
		kfd->on_cards[kfd->n_on_cards++] = (struct on_card){card,
			{pid_match_local(&kfd->match, number), bytes, units}};
	if (side == PID_UNKNOWN) {
		use->unknown_processes++;
		return;
	}
	bool is_target = side == PID_TARGET;
	add(is_target ? &use->target_bytes : &use->others_bytes, bytes);
	add(is_target ? &use->target_units : &use->others_units, units);
	if (is_target)
		use->target_processes++;
	else
		use->others_processes++;
	if (is_main)
		add(&use->main_bytes, bytes);
}

static void read_process(struct kfd *kfd, uint32_t number, pid_t main_pid)
{
	enum pid_method method;
	pid_t pid;
	enum pid_side side = pid_match_side(&kfd->match, number, &method, &pid);
	for (size_t i = 0; i < kfd->n_cards; i++)
		if (kfd->ids[i] != 0)
			add_process(kfd, i, number, side, side == PID_TARGET && pid == main_pid);
}

static bool parse_pid(const char *name, uint32_t *ret_pid)
{
	uint64_t pid;
	if (num_parse_u64(name, &pid) < 0 || pid == 0 || pid > INT32_MAX)
		return false;
	*ret_pid = (uint32_t)pid;
	return true;
}

// Returns the number of processes. It runs at each sample, so it does not allocate.
static size_t list_processes(const struct kfd *kfd, uint32_t pids[PROCESSES_MAX])
{
	alignas(8) char text[FOLDER_TEXT_SIZE];
	wattle_cleanup_close int fd = file_open_in(kfd->env->sysfs_fd, processes_path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return 0;
	struct folder_walk walk = folder_walk_begin(fd, text, sizeof(text));
	const char *name;
	size_t n = 0;
	while (n < PROCESSES_MAX && (name = folder_walk_next(&walk, NULL)) != NULL)
		n += parse_pid(name, &pids[n]);
	return n;
}

// Registers all pids before classifying any: a pid that does not exist here indicates another pid namespace.
static void read_processes(struct kfd *kfd, const struct sensor_context *context)
{
	uint32_t pids[PROCESSES_MAX];
	size_t n = list_processes(kfd, pids);
	pid_match_update(&kfd->match, context);
	for (size_t p = 0; p < n; p++)
		pid_match_add_seen(&kfd->match, pids[p]);
	for (size_t p = 0; p < n; p++)
		read_process(kfd, pids[p], context->main_pid);
}

void kfd_read(struct kfd *kfd, const struct sensor_context *context, struct kfd_use *ret_uses)
{
	if (context->t_ns - kfd->read_ns >= READ_EVERY_NS) {
		memset(kfd->uses, 0, sizeof(kfd->uses));
		kfd->n_on_cards = 0;
		read_processes(kfd, context);
		kfd->read_ns = context->t_ns;
	}
	memcpy(ret_uses, kfd->uses, kfd->n_cards * sizeof(*ret_uses));
}

size_t kfd_processes(const struct kfd *kfd, size_t card, struct kfd_process *processes, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; i < kfd->n_on_cards && n < room; i++)
		if (kfd->on_cards[i].card == card)
			processes[n++] = kfd->on_cards[i].process;
	return n;
}
