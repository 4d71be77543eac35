#include "serve/totals.h"

#include "base/fnv.h"
#include "base/util.h"

#include <netinet/in.h>

uint32_t scraper_id(const struct sockaddr *address, const char *program)
{
	uint32_t hash = FNV_START_U32;
	if (address != NULL && address->sa_family == AF_INET)
		hash = fnv_u32(hash, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
			sizeof(struct in_addr));
	if (address != NULL && address->sa_family == AF_INET6)
		hash = fnv_u32(hash, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
			sizeof(struct in6_addr));
	return program != NULL ? fnv_u32(hash, program, strlen(program)) : hash;
}

/* Finds the scraper of a connection: its previous user; else, of the disconnected scrapers with that id, the one that came
 * last, so that a scraper that lags behind is not confused with a current one. SCRAPERS_MAX: a new scraper. */
static size_t find(const struct scrapers *scrapers, uint32_t id, uint64_t line)
{
	size_t found = SCRAPERS_MAX;
	for (size_t i = 0; i < scrapers->n; i++) {
		if (scrapers->items[i].id != id)
			continue;
		if (scrapers->items[i].line == line)
			return i;
		if (scrapers->items[i].line == 0 &&
			(found == SCRAPERS_MAX || scrapers->items[i].t_ns > scrapers->items[found].t_ns))
			found = i;
	}
	return found;
}

// Entry of a new scraper; replaces the one that was inactive longest.
static size_t new_index(struct scrapers *scrapers)
{
	size_t oldest = 0;
	for (size_t i = 1; i < scrapers->n; i++)
		if (scrapers->items[i].t_ns < scrapers->items[oldest].t_ns)
			oldest = i;
	return scrapers->n < SCRAPERS_MAX ? scrapers->n++ : oldest;
}

void scrapers_note(struct scrapers *scrapers, uint32_t id, uint64_t line, uint64_t sample, int64_t t_ns)
{
	size_t i = find(scrapers, id, line);
	bool is_new = i == SCRAPERS_MAX;
	if (is_new)
		i = new_index(scrapers);
	scrapers->items[i].gap_ns = is_new ? 0 : t_ns - scrapers->items[i].t_ns;
	scrapers->items[i].id = id;
	scrapers->items[i].line = line;
	scrapers->items[i].sample = sample;
	scrapers->items[i].t_ns = t_ns;
}

void scrapers_hang_up(struct scrapers *scrapers, uint64_t line)
{
	for (size_t i = 0; i < scrapers->n; i++)
		if (scrapers->items[i].line == line)
			scrapers->items[i].line = 0;
}

static int64_t timeout_ns(int64_t gap_ns)
{
	int64_t max_ns = SCRAPER_INTERVAL_MAX_S * NS_PER_S, min_ns = SCRAPER_TIMEOUT_S * NS_PER_S;
	int64_t own_ns = (gap_ns < max_ns ? gap_ns : max_ns) * SCRAPER_INTERVALS;
	return own_ns > min_ns ? own_ns : min_ns;
}

struct scraped scrapers_seen(const struct scrapers *scrapers, int64_t t_ns)
{
	struct scraped seen = {.sample = 0, .t_ns = INT64_MAX};
	bool any = false;
	for (size_t i = 0; i < scrapers->n; i++) {
		if (t_ns - scrapers->items[i].t_ns > timeout_ns(scrapers->items[i].gap_ns))
			continue;
		if (!any || scrapers->items[i].sample < seen.sample)
			seen.sample = scrapers->items[i].sample;
		any = true;
	}
	return seen;
}

/* ---- persistence ---- */

// clang-format off
static const struct field scraper_fields[] = {
	FIELD(struct scraper, id, NULL, "hash of address and program"),
	FIELD_AS(struct scraper, "came_ns", t_ns, "ns", "time of its last request"),
	FIELD(struct scraper, gap_ns, "ns", "time between its last two requests"),
};
// clang-format on
static const struct object_type scraper_type = OBJECT_TYPE("scraper", "A client.", scraper_fields);

FIELD_ARRAY_OF(scraper, struct scrapers, items, n)

static const struct field scrapers_fields[] = {FIELD_LIST(NULL, &scraper_type, scraper_count, scraper_item, "clients")};
const struct object_type scrapers_type = OBJECT_TYPE("scrapers", "Clients.", scrapers_fields);

// Values out of range become 0 (long ago).
static int64_t take_number(const json_t *object, const char *key, int64_t max_ns)
{
	json_int_t value = json_integer_value(json_object_get(object, key));
	return value >= 0 && value <= max_ns ? value : 0;
}

void scrapers_read(struct scrapers *scrapers, const json_t *array, bool same_boot, int64_t t_ns)
{
	size_t i;
	const json_t *object;
	json_array_foreach(array, i, object)
	{
		if (scrapers->n == SCRAPERS_MAX)
			return;
		size_t at = scrapers->n++;
		scrapers->items[at].id = (uint32_t)take_number(object, "id", UINT32_MAX);
		scrapers->items[at].t_ns = same_boot ? take_number(object, "came_ns", t_ns) : t_ns;
		scrapers->items[at].gap_ns = take_number(object, "gap_ns", SCRAPER_INTERVAL_MAX_S * NS_PER_S);
	}
}
