#include "report/stats_json.h"

void stats_json(struct jsonw *j, const char *key, const struct value_stats *stats, double factor)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	jsonw_key_double(j, "min", stats->min * factor);
	jsonw_key_double(j, "max", stats->max * factor);
	jsonw_key_double(j, "mean", stats->mean * factor);
	jsonw_key_double(j, "std", stats->std * factor);
	jsonw_end_object(j);
}
