#include "sensor/sensor.h"

#include "base/util.h"
#include "sensor/gpu/drm.h"
#include "sensor/gpu_roster.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* AMD GPUs through the amdgpu driver's files in /sys. No AMD library is required. ROCm SMI, if present, supplies energy or
 * power where the files lack them. */

static const char power_now[] =
	"its energy counter sometimes stops while it draws power; the gaps are filled from power readings";
static const char frozen[] = "its energy counter does not change while it draws power; power is integrated instead";

static const int64_t FIND_AGAIN_NS = NS_PER_S;
/* The firmware updates its counter every millisecond. A counter that does not move for this long while the board draws power
 * is not used. Only machines with such a counter wait. */
enum { POLL_MS = 2, FROZEN_MS = 250 };
enum { USERS_MAX = 256 };

struct amdgpu {
	struct amdgpu_card *cards; // owned; cards[i] belongs to domains[i]
	struct domain *domains;    // owned
	const char **pci;          // owned; the cards' addresses
	size_t n;
	struct drm_clients *clients;         // owned
	struct kfd *kfd;                     // owned; NULL: not available
	struct rocm_smi *smi;                // owned; NULL: not needed or not available
	struct drm_use *drm_uses;            // owned, n
	struct kfd_use *kfd_uses;            // owned, n
	int64_t searched_ns;                 // time of the last search for a lost card
	struct drm_clients *all;             // owned; clients of all processes; NULL unless list_users
	int64_t *busy_percent;               // owned, n: busy percent of each card at the last reading
	struct device_user users[USERS_MAX]; // users of the card queried last
};

/* ---- open ---- */

static int make_room(struct amdgpu *amdgpu, size_t n)
{
	amdgpu->cards = calloc_array(n, sizeof(*amdgpu->cards));
	amdgpu->domains = calloc_array(n, sizeof(*amdgpu->domains));
	amdgpu->pci = calloc_array(n, sizeof(*amdgpu->pci));
	amdgpu->drm_uses = calloc_array(n, sizeof(*amdgpu->drm_uses));
	amdgpu->kfd_uses = calloc_array(n, sizeof(*amdgpu->kfd_uses));
	amdgpu->busy_percent = calloc_array(n, sizeof(*amdgpu->busy_percent));
	bool all = amdgpu->cards != NULL && amdgpu->domains != NULL && amdgpu->pci != NULL &&
		amdgpu->drm_uses != NULL && amdgpu->kfd_uses != NULL && amdgpu->busy_percent != NULL;
	return all ? 0 : -ENOMEM;
}

static void add_card(struct amdgpu *amdgpu, const struct wattle_env *env, const struct drm_card *found)
{
	struct amdgpu_card *card = &amdgpu->cards[amdgpu->n];
	amdgpu_card_open(card, env, found, &amdgpu->domains[amdgpu->n]);
	amdgpu->pci[amdgpu->n++] = card->found.pci;
}

/* ---- ROCm SMI ---- */

// Finds the card's index in the library by PCI address, else by position.
static size_t find_in_library(const struct amdgpu *amdgpu, size_t card)
{
	char address[32];
	size_t count = rocm_smi_count(amdgpu->smi);
	for (size_t i = 0; i < count; i++) {
		rocm_smi_address(amdgpu->smi, i, address, sizeof(address));
		if (address[0] == '\0')
			return card;
		if (strcmp(address, amdgpu->pci[card]) == 0)
			return i;
	}
	return count;
}

static bool some_lack_figures(const struct amdgpu *amdgpu)
{
	bool lacking = false;
	for (size_t i = 0; i < amdgpu->n; i++) {
		if (drm_power_sleeps(&amdgpu->cards[i].power))
			return false; // the library would wake the card
		lacking = lacking || amdgpu_card_lacks_figures(&amdgpu->cards[i]);
	}
	return lacking;
}

static void query_library(struct amdgpu *amdgpu, const struct wattle_env *env)
{
	if (!some_lack_figures(amdgpu))
		return;
	amdgpu->smi = rocm_smi_open(env);
	for (size_t i = 0; amdgpu->smi != NULL && i < amdgpu->n; i++) {
		size_t gpu = find_in_library(amdgpu, i);
		if (amdgpu_card_lacks_figures(&amdgpu->cards[i]) && gpu < rocm_smi_count(amdgpu->smi))
			amdgpu_card_assist(&amdgpu->cards[i], amdgpu->smi, gpu, &amdgpu->domains[i]);
	}
}

// Without a card in /sys, the library is asked only if the user named one.
static int open_from_library(struct amdgpu *amdgpu, const struct wattle_env *env)
{
	amdgpu->smi = env->rocm_smi != NULL ? rocm_smi_open(env) : NULL;
	if (amdgpu->smi == NULL)
		return 0;
	size_t n = rocm_smi_count(amdgpu->smi);
	int r = make_room(amdgpu, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct drm_card found = {.vendor = DRM_AMD};
		rocm_smi_address(amdgpu->smi, i, found.pci, sizeof(found.pci));
		add_card(amdgpu, env, &found);
		amdgpu_card_assist(&amdgpu->cards[i], amdgpu->smi, i, &amdgpu->domains[i]);
	}
	return r;
}

static int open_cards(struct amdgpu *amdgpu, const struct wattle_env *env, const struct drm_cards *cards)
{
	int r = make_room(amdgpu, cards->n);
	for (size_t i = 0; r == 0 && i < cards->n; i++)
		if (drm_card_is_gpu(&cards->cards[i]))
			add_card(amdgpu, env, &cards->cards[i]);
	if (r == 0)
		query_library(amdgpu, env);
	return r;
}

static int open_uses(struct amdgpu *amdgpu, const struct wattle_env *env, bool list_users)
{
	amdgpu->all = list_users ? drm_clients_new(env, amdgpu->pci, amdgpu->n) : NULL;
	if (list_users && amdgpu->all == NULL)
		return -ENOMEM;
	amdgpu->kfd = kfd_new(env, amdgpu->pci, amdgpu->n);
	amdgpu->clients = drm_clients_new(env, amdgpu->pci, amdgpu->n);
	return amdgpu->clients != NULL ? 0 : -ENOMEM;
}

/* ---- selection ---- */

// HIP uses CUDA_VISIBLE_DEVICES if its own variable is unset or empty.
static const char *visible_to_target(const struct sensor_options *options, const struct gpu_candidate *candidates,
	size_t n, bool *ret_wanted)
{
	const char *hip = options->hip_visible_devices, *cuda = options->cuda_visible_devices;
	bool own = hip != NULL && hip[0] != '\0', foreign = !own && cuda != NULL && cuda[0] != '\0';
	const char *const visible[] = {options->rocr_visible_devices, own ? hip : foreign ? cuda : NULL};
	gpu_select_rocm(visible, ARRAY_SIZE(visible), candidates, n, ret_wanted);
	if (own)
		return "hidden by HIP_VISIBLE_DEVICES";
	return visible[0] != NULL ? "hidden by ROCR_VISIBLE_DEVICES" : "hidden by CUDA_VISIBLE_DEVICES";
}

// ROCm numbers only the cards that can compute.
static int choose(struct amdgpu *amdgpu, const struct sensor_options *options)
{
	struct gpu_candidate *candidates = gpu_choice_candidates(amdgpu->domains, amdgpu->n);
	for (size_t i = 0; candidates != NULL && i < amdgpu->n; i++)
		candidates[i].usable = amdgpu->kfd == NULL || kfd_has(amdgpu->kfd, i);
	int r = gpu_choice_resolve(amdgpu->domains, candidates, amdgpu->n, visible_to_target, options);
	free(candidates);
	return r;
}

/* ---- stalled counters ---- */

// Returns the counter of a card that draws power now; VALUE_MISSING: no reason to suspect a stall.
static int64_t suspect(struct amdgpu_card *card)
{
	const struct sensor_context context = {0};
	struct gpu_accumulator before = card->accumulator;
	int64_t row[DEVICE_COUNT];
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		row[m] = VALUE_MISSING;
	int r = amdgpu_card_read(card, &context, row);
	card->accumulator = before; // this reading is not part of the run
	return r == 0 && row[DEVICE_POWER] > 0 ? amdgpu_card_units(card) : VALUE_MISSING;
}

// Clears the suspects whose counter has moved; returns true if some have not.
static bool find_card(struct amdgpu *amdgpu, int64_t *units)
{
	bool any = false;
	for (size_t i = 0; i < amdgpu->n; i++) {
		if (value_ok(units[i]) && amdgpu_card_units(&amdgpu->cards[i]) > units[i])
			units[i] = VALUE_MISSING;
		any = any || value_ok(units[i]);
	}
	return any;
}

static void reject_reading(struct amdgpu_card *card, struct domain *domain)
{
	card->counts_energy = false;
	domain->has_energy = false;
	domain->provenance = PROVENANCE_DERIVED;
	domain->resolution_uj = 0;
	text_copy(domain->note, sizeof(domain->note), frozen);
}

static int check_counters(struct amdgpu *amdgpu)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * NS_PER_MS};
	int64_t *units = calloc_array(amdgpu->n, sizeof(*units));
	if (units == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < amdgpu->n; i++)
		units[i] = amdgpu->domains[i].used ? suspect(&amdgpu->cards[i]) : VALUE_MISSING;
	for (int ms = 0; find_card(amdgpu, units) && ms < FROZEN_MS; ms += POLL_MS)
		nanosleep(&pause, NULL);
	for (size_t i = 0; i < amdgpu->n; i++)
		if (value_ok(units[i]))
			reject_reading(&amdgpu->cards[i], &amdgpu->domains[i]);
	free(units);
	return 0;
}

/* ---- the sensor ---- */

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct amdgpu *amdgpu = state;
	struct drm_cards cards;
	if (options->gpu_brand != NULL && strcmp(options->gpu_brand, "amd") != 0)
		return 0;
	int r = drm_cards_find(env, DRM_AMD, &cards);
	if (r == 0)
		r = cards.n > 0 ? open_cards(amdgpu, env, &cards) : open_from_library(amdgpu, env);
	drm_cards_finish(&cards);
	if (r == 0 && amdgpu->n > 0)
		r = open_uses(amdgpu, env, options->list_users);
	gpu_choice_name(amdgpu->domains, amdgpu->n, options);
	if (r == 0 && amdgpu->n > 0)
		r = choose(amdgpu, options);
	if (r == 0 && amdgpu->n > 0 && options->calibrate_ns > 0)
		r = check_counters(amdgpu);
	return r < 0 ? error_set(reterr, r, "out of memory for the AMD GPUs") : 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct amdgpu *amdgpu = state;
	*ret_count = amdgpu->n;
	return amdgpu->domains;
}

static void fill_note(const struct amdgpu_card *card, struct domain *domain, int read)
{
	bool current_power = card->accumulator.is_unchanged && read == 0;
	if (current_power)
		text_copy(domain->note, sizeof(domain->note), power_now);
	else
		drm_state_describe(domain, read == -EAGAIN ? DRM_ASLEEP : read == -ENODEV ? DRM_GONE : DRM_AWAKE);
}

static void read_uses(struct amdgpu *amdgpu, const struct sensor_context *context)
{
	drm_clients_read(amdgpu->clients, context, amdgpu->drm_uses);
	if (amdgpu->all != NULL)
		drm_clients_read_all(amdgpu->all, context);
	if (amdgpu->kfd != NULL)
		kfd_read(amdgpu->kfd, context, amdgpu->kfd_uses);
}

static void read_card(struct amdgpu *amdgpu, size_t i, const struct sensor_context *context, int64_t *row)
{
	struct amdgpu_card *card = &amdgpu->cards[i];
	bool find_again = context->t_ns - amdgpu->searched_ns >= FIND_AGAIN_NS && !context->energy_only;
	int r = amdgpu_card_read(card, context, row);
	fill_note(card, &amdgpu->domains[i], r);
	if (!context->energy_only)
		amdgpu->busy_percent[i] = row[DEVICE_UTILIZATION];
	if (r == 0 && !context->energy_only)
		amdgpu_use_fill(&amdgpu->drm_uses[i], kfd_has(amdgpu->kfd, i) ? &amdgpu->kfd_uses[i] : NULL, context,
			row);
	if (r == -ENODEV && find_again) {
		amdgpu_card_find_again(card);
		amdgpu->searched_ns = context->t_ns;
	}
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct amdgpu *amdgpu = state;
	bool any = false;
	for (size_t i = 0; i < amdgpu->n; i++)
		any = any || amdgpu->domains[i].used;
	if (any && !context->energy_only)
		read_uses(amdgpu, context);
	for (size_t i = 0; i < amdgpu->n; i++)
		if (amdgpu->domains[i].used)
			read_card(amdgpu, i, context, rows[i]);
}

static const struct device_user *list_users(void *state, size_t card, size_t *ret_count)
{
	struct amdgpu *amdgpu = state;
	struct kfd_process processes[USERS_MAX];
	if (amdgpu->all == NULL || card >= amdgpu->n)
		return NULL;
	size_t n_processes = kfd_has(amdgpu->kfd, card) ? kfd_processes(amdgpu->kfd, card, processes, USERS_MAX) : 0;
	size_t n = drm_clients_users(amdgpu->all, card, amdgpu->users, USERS_MAX);
	*ret_count = amdgpu_users_merge(amdgpu->users, n, USERS_MAX, processes, n_processes,
		amdgpu->busy_percent[card]);
	return amdgpu->users;
}

static void close_sensor(void *state)
{
	struct amdgpu *amdgpu = state;
	drm_clients_free(amdgpu->all);
	free(amdgpu->busy_percent);
	for (size_t i = 0; i < amdgpu->n; i++)
		amdgpu_card_close(&amdgpu->cards[i]);
	drm_clients_free(amdgpu->clients);
	kfd_free(amdgpu->kfd);
	rocm_smi_close(amdgpu->smi);
	free(amdgpu->cards);
	free(amdgpu->domains);
	free(amdgpu->pci);
	free(amdgpu->drm_uses);
	free(amdgpu->kfd_uses);
	*amdgpu = (struct amdgpu){0};
}

const struct sensor_ops sensor_amdgpu = {
	.name = "amdgpu",
	.state_size = sizeof(struct amdgpu),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.users = list_users,
	.close = close_sensor,
};
