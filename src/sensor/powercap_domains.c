#include "sensor/internal.h"

#include "base/util.h"

#include <assert.h>
#include <stdio.h>

// The memory-mapped interface exposes package 0's counter a second time; only its limits differ.
static const char mmio_type[] = "intel-rapl-mmio";

struct meaning {
	enum domain_kind kind;
	int package; // -1: not reported
	int die;     // -1: not reported
};

// Parses a decimal number at *at; returns -1 and leaves *at unchanged if there is none.
static int read_number(const char **at)
{
	int value = 0, digits = 0;
	for (; (*at)[digits] >= '0' && (*at)[digits] <= '9'; digits++) {
		if (digits == 6)
			return -1;
		value = value * 10 + ((*at)[digits] - '0');
	}
	*at += digits;
	return digits > 0 ? value : -1;
}

static bool skip(const char **at, const char *text)
{
	size_t length = strlen(text);
	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

// Parses "package-1-die-0", "psys", "psys-1", "core", "uncore", "dram".
static bool parse_name(const char *name, struct meaning *ret_meaning)
{
	static const struct {
		const char *text;
		enum domain_kind kind;
	} plain[] = {{"core", DOMAIN_CORE}, {"uncore", DOMAIN_UNCORE}, {"dram", DOMAIN_DRAM}, {"psys", DOMAIN_PSYS}};
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (strcmp(name, plain[i].text) == 0) {
			*ret_meaning = (struct meaning){plain[i].kind, -1, -1};
			return true;
		}
	struct meaning meaning = {.die = -1};
	const char *at = name;
	if (skip(&at, "package-"))
		meaning.kind = DOMAIN_PACKAGE;
	else if (skip(&at, "psys-"))
		meaning.kind = DOMAIN_PSYS;
	else
		return false;
	meaning.package = read_number(&at);
	if (meaning.package < 0)
		return false;
	if (meaning.kind == DOMAIN_PACKAGE && skip(&at, "-die-") && (meaning.die = read_number(&at)) < 0)
		return false;
	*ret_meaning = meaning;
	return *at == '\0';
}

bool powercap_zone_is_known(const struct zone *zone)
{
	struct meaning meaning;
	// dtpm zones are also named after devices, but contain budgets, not counters.
	return strcmp(zone->type, "dtpm") != 0 && strcmp(zone->type, "idle-injection") != 0 &&
		parse_name(zone->name, &meaning);
}

/* Two zones with one name and different counters: both count, under distinct names (kernels before 6.1 call every socket's
 * platform domain "psys"). */
static void make_unique(struct domain *domains, size_t i)
{
	struct domain *d = &domains[i];
	char base[sizeof(d->name) - 12];
	text_copy(base, sizeof(base), d->name);
	for (unsigned n = 2; d->used && domain_find_used(domains, i, d->name) != NULL; n++)
		snprintf(d->name, sizeof(d->name), "%s-%u", base, n);
}

/* Kernels without rapl_msrs_are_pkg_scope() register a zone for every die of an AMD socket. All of them show the socket's
 * single counter, so their sum would count it several times. The first readable zone represents the socket. */
static void name_die(struct domain *domains, size_t i, const struct meaning *meaning, bool dies_share_counter)
{
	struct domain *d = &domains[i];
	char socket[sizeof(d->name)];
	snprintf(socket, sizeof(socket), "package-%d", meaning->package);
	snprintf(d->name, sizeof(d->name), "package-%d-die-%d", meaning->package, meaning->die);
	if (!dies_share_counter || !d->used)
		return;
	const struct domain *first = domain_find_used(domains, i, socket);
	if (first == NULL)
		text_copy(d->name, sizeof(d->name), socket);
	else
		domain_leave_out(d, "%s reads the same counter of the whole socket", first->device);
}

static void name_top(struct domain *domains, size_t i, const struct meaning *meaning, bool dies_share_counter)
{
	struct domain *d = &domains[i];
	const char *kind = domain_kind_name(meaning->kind);
	d->index = meaning->package;
	if (meaning->die >= 0)
		name_die(domains, i, meaning, dies_share_counter);
	else if (meaning->package >= 0)
		snprintf(d->name, sizeof(d->name), "%s-%d", kind, meaning->package);
	else
		text_copy(d->name, sizeof(d->name), kind);
}

// core, uncore and dram inherit the suffix of their package's name: "-1", "-0-die-1".
static void name_part(struct domain *d, const struct domain *package, enum domain_kind kind)
{
	const char *suffix = package->name + strlen(domain_kind_name(DOMAIN_PACKAGE));
	d->index = package->index;
	snprintf(d->name, sizeof(d->name), "%s%s", domain_kind_name(kind), suffix);
	if (kind != DOMAIN_DRAM) // memory belongs to the socket, but its power is not in the socket's counter
		text_copy(d->inside, sizeof(d->inside), package->name);
	bool package_left_out = package->readable && !package->used;
	if (package_left_out)
		domain_leave_out(d, "part of %s, which is excluded", package->device);
}

static struct domain *find_named(struct domain *domains, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(domains[i].name, name) == 0)
			return &domains[i];
	return NULL;
}

static void make_name_unique(const struct zone *zone, struct domain *domains, size_t i)
{
	struct domain *d = &domains[i];
	const struct domain *same = find_named(domains, i, d->name);
	if (strcmp(zone->type, mmio_type) != 0 || same == NULL)
		make_unique(domains, i);
	else if (same->used || !d->used) // else only the twin is readable
		domain_leave_out(d, "duplicate of the counter of %s", same->device);
}

void powercap_name_domains(const struct zone *zones, struct domain *domains, size_t n, bool dies_share_counter)
{
	for (size_t i = 0; i < n; i++) {
		struct domain *d = &domains[i];
		struct meaning meaning;
		bool known = parse_name(zones[i].name, &meaning);
		assert(known); // the caller kept only known zones
		(void)known;
		const struct domain *parent = zones[i].parent >= 0 ? &domains[zones[i].parent] : NULL;
		d->kind = meaning.kind;
		text_copy(d->device, sizeof(d->device), zones[i].id);
		if (meaning.package < 0 && parent != NULL && parent->kind == DOMAIN_PACKAGE)
			name_part(d, parent, meaning.kind);
		else
			name_top(domains, i, &meaning, dies_share_counter);
		make_name_unique(&zones[i], domains, i);
	}
	domains_put_packages_inside_psys(domains, n);
}
