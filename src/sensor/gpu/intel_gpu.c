#include "sensor/sensor.h"

#include "base/num.h"
#include "base/util.h"
#include "sensor/gpu/drm.h"
#include "sensor/gpu/drm_cards.h"
#include "sensor/gpu_roster.h"
#include "sensor/sysfs.h"

#include <errno.h>
#include <stdio.h>

/* Intel graphics cards: the hwmon of i915 (Linux 6.2) and of xe (6.5). Both extend the 32-bit hardware counter to 64 bits.
 *
 * energy1 is the whole card. xe adds energy2 since 6.8: the package, a part of the card. i915 has further hwmons for its
 * tiles (i915_gt0 …), also parts, which are ignored. GPUs inside CPUs have no hwmon: RAPL meters them. */

static const struct gauge gauges[] = {
	{DEVICE_POWER_CAP, true, 1000, {"power1_max"}},
	{DEVICE_TEMPERATURE, true, 1000, {"temp2_input", "temp1_input"}}, // xe: temp2 is the package
	{DEVICE_SM_CLOCK, false, 1, {"tile0/gt0/freq0/act_freq"}},
};
enum { GAUGES = ARRAY_SIZE(gauges), COUNTERS_MAX = 2, USERS_MAX = 256 };

// A 300 W limit does not prevent peaks of a few milliseconds above 300 W.
static const double peak_over_limit = 1.2;

struct intel_card {
	struct drm_card found;
	bool has_part; // energy2 beside energy1
	struct drm_power power;
	struct file_kept energy; // path "": none
	struct gauge_file gauges[GAUGES];
};

struct intel_gpu {
	struct intel_card *cards; // owned
	struct domain *domains;   // owned; first one per card, then domains that are only listed
	size_t n_cards, n_domains;
	const char **pci;                    // owned; the cards' addresses
	struct drm_clients *clients;         // owned
	struct drm_use *uses;                // owned; one per card
	struct drm_clients *all;             // owned; clients of all processes; NULL unless list_users
	struct device_user users[USERS_MAX]; // users of the card queried last
	const struct wattle_env *env;        // borrowed
	int64_t searched_ns;                 // time of the last search for a lost card
};

static const int64_t FIND_AGAIN_NS = NS_PER_S;

static void name_device(const struct drm_card *card, const char *what, struct domain *domain)
{
	snprintf(domain->device, sizeof(domain->device), "Intel %s 8086:%04x%s%s", what, card->product,
		card->pci[0] != '\0' ? " at " : "", card->pci);
}

/* ---- energy ---- */

static int read_energy(struct file_kept *file, int64_t *ret_uj)
{
	uint64_t energy_uj;
	int r = file_kept_read_u64(file, &energy_uj);
	if (r == 0 && energy_uj > INT64_MAX)
		r = -ERANGE;
	if (r == 0)
		*ret_uj = (int64_t)energy_uj;
	return r;
}

// Opens energyN_input. Returns a negative errno if it is missing or yields no number. A sleeping card is not read.
static int open_counter(struct file_kept *file, const struct wattle_env *env, const struct drm_card *card, int number,
	bool asleep)
{
	char path[sizeof(file->path)];
	int64_t energy_uj;
	*file = (struct file_kept){.fd = -1};
	if (card->hwmon[0] == '\0')
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/energy%d_input", card->hwmon, number);
	int r = file_kept_open(file, env->sysfs_fd, path);
	return r == 0 && !asleep ? read_energy(file, &energy_uj) : r;
}

/* Opens the first readable counter as the card's. Returns 0, or a negative errno if there is none. *ret_only_package is set
 * if the counter covers only the package. */
static int open_energy(struct intel_card *card, const struct wattle_env *env, bool asleep, bool *ret_only_package)
{
	struct file_kept package;
	int whole = open_counter(&card->energy, env, &card->found, 1, asleep);
	int part = open_counter(&package, env, &card->found, 2, asleep);
	card->has_part = whole == 0 && part == 0;
	*ret_only_package = whole < 0 && part == 0;
	if (!*ret_only_package) {
		file_kept_close(&package);
		return whole;
	}
	file_kept_close(&card->energy);
	card->energy = package;
	return 0;
}

/* ---- open ---- */

static void describe_missing(struct domain *domain, const struct wattle_env *env, const struct drm_card *card, int code)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/energy1_input", card->hwmon);
	domain_set_unreadable(domain, env, path, code);
	if (card->hwmon[0] == '\0') {
		text_copy(domain->why, sizeof(domain->why), "its driver has no energy counter");
		text_copy(domain->remedy, sizeof(domain->remedy),
			"boot Linux 6.2 or newer (driver i915), 6.5 or newer (xe)");
	}
}

static double limit_w(const struct wattle_env *env, const struct drm_card *card)
{
	int64_t limit_uw = VALUE_MISSING;
	if (card->hwmon[0] != '\0')
		limit_uw = gauge_read_once(env->sysfs_fd, card->hwmon, "power1_rated_max");
	return limit_uw > 0 ? (double)limit_uw / 1e6 * peak_over_limit : 0;
}

static uint64_t memory_bytes(const struct wattle_env *env, const struct drm_card *card)
{
	int64_t total = gauge_read_once(env->sysfs_fd, card->device, "tile0/physical_vram_size_bytes");
	return total > 0 ? (uint64_t)total : 0;
}

// Adds a domain that is only listed: it has no number, and totals are complete without it.
static void add_shown(struct intel_gpu *intel, const struct drm_card *card, enum domain_kind kind, const char *name,
	const char *what, const char *why)
{
	struct domain *domain = &intel->domains[intel->n_domains++];
	*domain = (struct domain){.kind = kind, .index = -1, .readable = kind == DOMAIN_GPU, .unwanted = true};
	domain->provenance = PROVENANCE_MEASURED;
	text_copy(domain->name, sizeof(domain->name), name);
	text_copy(domain->why, sizeof(domain->why), why);
	name_device(card, what, domain);
}

static int open_files(struct intel_card *card, const struct wattle_env *env, bool *ret_only_package)
{
	drm_power_open(&card->power, env, card->found.device);
	bool asleep = drm_power_sleeps(&card->power);
	gauges_open(card->gauges, gauges, GAUGES, env->sysfs_fd, card->found.device, card->found.hwmon, asleep);
	return open_energy(card, env, asleep, ret_only_package);
}

static void close_files(struct intel_card *card)
{
	drm_power_close(&card->power);
	file_kept_close(&card->energy);
	gauges_close(card->gauges, GAUGES);
}

static void open_card(struct intel_gpu *intel, const struct wattle_env *env, const struct drm_card *found)
{
	struct intel_card *card = &intel->cards[intel->n_cards];
	struct domain *domain = &intel->domains[intel->n_cards++];
	bool only_package;
	*card = (struct intel_card){.found = *found};
	int r = open_files(card, env, &only_package);
	*domain = (struct domain){.readable = r == 0, .used = r == 0, .has_energy = r == 0};
	if (!drm_power_sleeps(&card->power)) {
		domain->max_power_w = limit_w(env, found);
		domain->memory_total_bytes = memory_bytes(env, found);
	}
	name_device(found, only_package ? "GPU package" : "GPU", domain);
	if (r < 0)
		describe_missing(domain, env, found, r);
}

static int open_cards(struct intel_gpu *intel, const struct wattle_env *env, const struct drm_cards *found,
	const struct sensor_options *options)
{
	intel->cards = calloc_array(found->n, sizeof(*intel->cards));
	intel->domains = calloc_array(2 * found->n, sizeof(*intel->domains));
	intel->pci = calloc_array(found->n, sizeof(*intel->pci));
	intel->uses = calloc_array(found->n, sizeof(*intel->uses));
	if (intel->cards == NULL || intel->domains == NULL || intel->pci == NULL || intel->uses == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < found->n; i++)
		if (drm_card_is_gpu(&found->cards[i]))
			open_card(intel, env, &found->cards[i]);
	intel->n_domains = intel->n_cards;
	gpu_choice_name(intel->domains, intel->n_cards, options);
	for (size_t i = 0; i < intel->n_cards; i++)
		if (intel->cards[i].has_part)
			add_shown(intel, &intel->cards[i].found, DOMAIN_GPU, intel->domains[i].name, "GPU package",
				"energy2_input is part of energy1_input");
	for (size_t i = 0; i < found->n; i++)
		if (drm_card_is_integrated(&found->cards[i]))
			add_shown(intel, &found->cards[i], DOMAIN_UNCORE, "uncore-0", "integrated GPU",
				"part of the CPU: RAPL measures it, as uncore-0");
	for (size_t i = 0; i < intel->n_cards; i++)
		intel->pci[i] = intel->cards[i].found.pci;
	intel->clients = drm_clients_new(intel->env, intel->pci, intel->n_cards);
	intel->all = options->list_users ? drm_clients_new(intel->env, intel->pci, intel->n_cards) : NULL;
	if (intel->clients == NULL || (options->list_users && intel->all == NULL))
		return -ENOMEM;
	struct gpu_candidate *candidates = gpu_choice_candidates(intel->domains, intel->n_cards);
	int r = gpu_choice_resolve(intel->domains, candidates, intel->n_cards, NULL, options);
	free(candidates);
	return r;
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct intel_gpu *intel = state;
	struct drm_cards cards;
	if (options->gpu_brand != NULL && strcmp(options->gpu_brand, "intel") != 0)
		return 0;
	intel->env = env;
	int r = drm_cards_find(env, DRM_INTEL, &cards);
	if (r == 0 && cards.n > 0)
		r = open_cards(intel, env, &cards, options);
	drm_cards_finish(&cards);
	return r < 0 ? error_set(reterr, r, "out of memory for the Intel GPUs") : 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct intel_gpu *intel = state;
	*ret_count = intel->n_domains;
	return intel->domains;
}

/* ---- read ---- */

static enum drm_state read_card(struct intel_card *card, const struct sensor_context *context, int64_t *row)
{
	if (drm_power_sleeps(&card->power))
		return DRM_ASLEEP;
	int r = read_energy(&card->energy, &row[DEVICE_ENERGY_RAW]);
	if (!context->energy_only)
		gauges_read(card->gauges, GAUGES, row);
	if (row[DEVICE_POWER_CAP] == 0) // limit disabled
		row[DEVICE_POWER_CAP] = VALUE_MISSING;
	return drm_is_gone(r) ? DRM_GONE : DRM_AWAKE;
}

static void find_again(struct intel_gpu *intel, struct intel_card *card)
{
	bool only_package;
	if (!drm_cards_find_again(intel->env, &card->found))
		return;
	close_files(card);
	open_files(card, intel->env, &only_package);
}

/* /sys shows neither the driver's busy percent nor the number of other users of the card, so only the target's side is
 * known. */
static void fill_use(const struct drm_use *use, const struct sensor_context *context, int64_t *row)
{
	if (!use->known || context->n_target_pids == 0)
		return;
	row[DEVICE_TARGET_PROCESSES] = use->processes;
	row[DEVICE_TARGET_MEMORY] = use->memory_bytes;
	row[DEVICE_MAIN_MEMORY] = use->main_memory_bytes;
	if (!isnan(use->busy_percent))
		row[DEVICE_TARGET_UTILIZATION] = (int64_t)fmin(use->busy_percent + 0.5, 100);
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct intel_gpu *intel = state;
	bool is_search_due = context->t_ns - intel->searched_ns >= FIND_AGAIN_NS && !context->energy_only;
	if (intel->n_cards > 0 && !context->energy_only)
		drm_clients_read(intel->clients, context, intel->uses);
	if (intel->all != NULL && !context->energy_only)
		drm_clients_read_all(intel->all, context);
	for (size_t i = 0; i < intel->n_cards; i++) {
		if (!intel->domains[i].used)
			continue;
		enum drm_state now = read_card(&intel->cards[i], context, rows[i]);
		drm_state_describe(&intel->domains[i], now);
		if (now == DRM_AWAKE && !context->energy_only)
			fill_use(&intel->uses[i], context, rows[i]);
		if (now == DRM_GONE && is_search_due) {
			find_again(intel, &intel->cards[i]);
			intel->searched_ns = context->t_ns;
		}
	}
}

static const struct device_user *list_users(void *state, size_t card, size_t *ret_count)
{
	struct intel_gpu *intel = state;
	if (intel->all == NULL || card >= intel->n_cards)
		return NULL;
	*ret_count = drm_clients_users(intel->all, card, intel->users, USERS_MAX);
	return intel->users;
}

static void close_sensor(void *state)
{
	struct intel_gpu *intel = state;
	drm_clients_free(intel->all);
	for (size_t i = 0; i < intel->n_cards; i++)
		close_files(&intel->cards[i]);
	drm_clients_free(intel->clients);
	free(intel->cards);
	free(intel->pci);
	free(intel->uses);
	free(intel->domains);
	*intel = (struct intel_gpu){0};
}

const struct sensor_ops sensor_intel_gpu = {
	.name = "intel_gpu",
	.state_size = sizeof(struct intel_gpu),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.users = list_users,
	.close = close_sensor,
};
