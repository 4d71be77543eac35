#include "sensor/gpu/drm.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
	CARDS_MAX = 64,
	DESCRIPTORS_MAX = 512,
	CLIENTS_MAX = 512,
	SCAN_MAX = 1024,
	SCAN_MAX_OF_ALL = 512,
	TEXT_SIZE = 8192
};
static const int64_t SCAN_EVERY_NS = NS_PER_S;

struct descriptor {
	pid_t pid;
	int number;
};

struct descriptor_list {
	struct descriptor items[DESCRIPTORS_MAX];
	size_t n;
};

// One open of a device, shared by processes that inherited it.
struct client {
	size_t card;
	uint64_t id;
	uint64_t reading; // reading at which it was last seen
	struct drm_engine_use engines[DRM_ENGINES];
	int64_t t_ns;
	struct device_user user; // process through which it was found, and its use
};

struct drm_clients {
	const struct wattle_env *env;        // borrowed
	const char *const *pci;              // borrowed
	size_t n_cards;                      // cards beyond CARDS_MAX are ignored
	pid_t last_pids[CARDS_MAX];          // process of the latest descriptor of each card
	struct descriptor_list known, found; // current list, and list of the scan in progress
	struct client clients[CLIENTS_MAX];
	size_t n_clients;
	uint64_t reading;
	bool scanning, visible;
	size_t scan_at; // number of target processes already scanned
	int64_t scan_began_ns;
	char text[TEXT_SIZE] __attribute__((aligned(8))); // buffer for one fdinfo file or part of a folder
};

struct drm_clients *drm_clients_new(const struct wattle_env *env, const char *const *pci, size_t n)
{
	struct drm_clients *clients = calloc(1, sizeof(*clients));
	if (clients == NULL)
		return NULL;
	clients->env = env;
	clients->pci = pci;
	clients->n_cards = n < CARDS_MAX ? n : CARDS_MAX;
	clients->scan_began_ns = INT64_MIN / 2;
	return clients;
}

void drm_clients_free(struct drm_clients *clients)
{
	free(clients);
}

/* ---- descriptors ---- */

// Checks for a link to /dev/dri/card0 or renderD128; if links can't be read, fdinfo decides.
static bool may_be_graphics(const struct drm_clients *c, pid_t pid, int number)
{
	char path[64], target[64];
	snprintf(path, sizeof(path), "%d/fd/%d", (int)pid, number);
	ssize_t length = readlinkat(c->env->procfs_fd, path, target, sizeof(target) - 1);
	if (length < 0)
		return errno == ENOENT;
	target[length] = '\0';
	return strncmp(target, "/dev/dri/", strlen("/dev/dri/")) == 0;
}

static void consider(struct drm_clients *c, pid_t pid, const char *name)
{
	uint64_t number;
	struct descriptor_list *found = &c->found;
	if (num_parse_u64(name, &number) < 0 || number > INT32_MAX || found->n == DESCRIPTORS_MAX)
		return;
	if (may_be_graphics(c, pid, (int)number))
		found->items[found->n++] = (struct descriptor){pid, (int)number};
}

// Returns the number of descriptors checked, or a negative errno.
static int scan_process(struct drm_clients *c, pid_t pid)
{
	char path[32];
	int scanned = 0;
	snprintf(path, sizeof(path), "%d/fdinfo", (int)pid);
	wattle_cleanup_close int fd = file_open_in(c->env->procfs_fd, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	struct folder_walk walk = folder_walk_begin(fd, c->text, sizeof(c->text));
	// Scans at most SCAN_MAX descriptors: a process with more uses them for queues, not for graphics.
	for (const char *name; scanned < SCAN_MAX && (name = folder_walk_next(&walk, NULL)) != NULL; scanned++)
		consider(c, pid, name);
	return scanned;
}

// Runs part of a scan, or all of it. The list in use is replaced only when a scan is complete.
static void scan(struct drm_clients *c, const struct sensor_context *context, int most)
{
	if (!c->scanning && context->t_ns - c->scan_began_ns < SCAN_EVERY_NS)
		return;
	if (!c->scanning) {
		c->scanning = true;
		c->scan_at = c->found.n = 0;
		c->scan_began_ns = context->t_ns;
	}
	for (int scanned = 0; c->scan_at < context->n_target_pids && scanned < most; c->scan_at++) {
		pid_t pid = context->target_pids[c->scan_at];
		int r = scan_process(c, pid);
		scanned += r > 0 ? r : 1;
		if (pid == context->main_pid)
			c->visible = r >= 0 || r == -ENOENT; // else access is denied
	}
	if (c->scan_at < context->n_target_pids)
		return;
	c->known = c->found;
	c->scanning = false;
}

/* ---- use ---- */

static size_t find_card(const struct drm_clients *c, const char *pdev)
{
	size_t i = 0;
	while (i < c->n_cards && (c->pci[i][0] == '\0' || strcasecmp(c->pci[i], pdev) != 0))
		i++;
	return i;
}

// Returns the client with this id, created if new; NULL: no room.
static struct client *find_client(struct drm_clients *c, size_t card, uint64_t id, bool *ret_is_new)
{
	for (size_t i = 0; i < c->n_clients; i++)
		if (c->clients[i].id == id && c->clients[i].card == card) {
			*ret_is_new = false;
			return &c->clients[i];
		}
	if (c->n_clients == CLIENTS_MAX)
		return NULL;
	struct client *client = &c->clients[c->n_clients++];
	*client = (struct client){.card = card, .id = id};
	*ret_is_new = true;
	return client;
}

static void forget_closed_clients(struct drm_clients *c)
{
	size_t kept = 0;
	for (size_t i = 0; i < c->n_clients; i++)
		if (c->clients[i].reading == c->reading)
			c->clients[kept++] = c->clients[i];
	c->n_clients = kept;
}

// Returns busy percent since the last reading (0 without one), and stores newer values.
static double advance(struct drm_engine_use *before, const struct drm_engine_use *now, int64_t dt_ns)
{
	bool in_cycles = value_ok(now->cycles) && value_ok(before->cycles);
	double span = in_cycles ? (double)now->cycles - (double)before->cycles : (double)dt_ns;
	// The driver's totals may step back briefly; busy time is never negative.
	double busy = now->busy > before->busy ? (double)now->busy - (double)before->busy : 0;
	if (now->busy > before->busy)
		before->busy = now->busy;
	if (in_cycles)
		before->cycles = now->cycles;
	return span > 0 ? busy / span / (double)now->capacity * 100 : 0;
}

// Returns NaN if a client reports no engine, as with all clients on old kernels.
static double busy_percent(struct client *client, const struct drm_fdinfo *info, int64_t t_ns)
{
	int64_t dt_ns = t_ns - client->t_ns;
	double percent = 0;
	bool reported = false;
	for (size_t e = 0; e < DRM_ENGINES; e++) {
		if (!value_ok(client->engines[e].busy) || !value_ok(info->engines[e].busy))
			continue;
		percent += advance(&client->engines[e], &info->engines[e], dt_ns);
		reported = true;
	}
	client->t_ns = t_ns;
	return reported ? percent : (double)NAN;
}

static void add_memory(const struct drm_fdinfo *info, bool is_main, struct drm_use *use)
{
	bool known = value_ok(info->memory_bytes);
	use->memory_bytes = known && value_ok(use->memory_bytes) ? use->memory_bytes + info->memory_bytes
								 : VALUE_MISSING;
	if (is_main)
		use->main_memory_bytes = known && value_ok(use->main_memory_bytes)
			? use->main_memory_bytes + info->memory_bytes
			: VALUE_MISSING;
}

static bool read_descriptor(struct drm_clients *c, const struct descriptor *descriptor, struct drm_fdinfo *ret_info)
{
	char path[64];
	snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)descriptor->pid, descriptor->number);
	return file_read_in(c->env->procfs_fd, path, c->text, sizeof(c->text)) > 0 &&
		drm_fdinfo_parse(c->text, ret_info);
}

static void add_descriptor(struct drm_clients *c, const struct descriptor *descriptor,
	const struct sensor_context *context, struct drm_use *uses)
{
	struct drm_fdinfo info;
	bool is_new;
	if (!read_descriptor(c, descriptor, &info))
		return;
	size_t card = find_card(c, info.pdev);
	if (card == c->n_cards)
		return;
	uses[card].processes += c->last_pids[card] != descriptor->pid; // sorted by process
	c->last_pids[card] = descriptor->pid;
	struct client *client = find_client(c, card, info.client, &is_new);
	if (client == NULL || client->reading == c->reading)
		return;
	client->reading = c->reading;
	if (is_new) {
		memcpy(client->engines, info.engines, sizeof(client->engines));
		client->t_ns = context->t_ns;
	}
	client->user = (struct device_user){
		.pid = descriptor->pid,
		.busy_percent = busy_percent(client, &info, context->t_ns),
		.memory_bytes = info.memory_bytes,
		.instance_percent = (double)NAN,
	};
	uses[card].busy_percent += client->user.busy_percent; // unknown if one client's is
	add_memory(&info, descriptor->pid == context->main_pid, &uses[card]);
}

static void read_clients(struct drm_clients *c, const struct sensor_context *context, int scan_max,
	struct drm_use *ret_uses)
{
	c->reading++;
	scan(c, context, scan_max);
	for (size_t i = 0; i < c->n_cards; i++) {
		ret_uses[i] = (struct drm_use){.known = c->visible};
		c->last_pids[i] = 0;
	}
	for (size_t i = 0; i < c->known.n; i++)
		add_descriptor(c, &c->known.items[i], context, ret_uses);
	forget_closed_clients(c);
}

void drm_clients_read(struct drm_clients *c, const struct sensor_context *context, struct drm_use *ret_uses)
{
	read_clients(c, context, SCAN_MAX, ret_uses);
}

void drm_clients_read_all(struct drm_clients *c, const struct sensor_context *context)
{
	struct drm_use uses[CARDS_MAX];
	struct sensor_context all = *context;
	all.main_pid = 0;
	all.target_pids = context->all_pids;
	all.n_target_pids = context->n_all_pids;
	read_clients(c, &all, SCAN_MAX_OF_ALL, uses);
}

size_t drm_clients_users(const struct drm_clients *c, size_t card, struct device_user *users, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n_clients && n < room; i++)
		if (c->clients[i].card == card)
			users[n++] = c->clients[i].user;
	return n;
}
