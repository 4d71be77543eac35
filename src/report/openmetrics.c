#include "report/openmetrics.h"

#include "base/num.h"
#include "base/utf8.h"
#include "base/util.h"

static const struct {
	const char *word, *suffix; // suffix of sample names
} types[] = {
	[OM_GAUGE] = {"gauge", ""},
	[OM_COUNTER] = {"counter", "_total"},
	[OM_INFO] = {"info", "_info"},
};

const struct om_family om_families[OM_FAMILIES] = {
#define FAMILY(id, name, type, unit, where, labels, help) {name, OM_##type, unit, help},
#include "report/openmetrics.def"
#undef FAMILY
};

struct om_family om_family_of(const struct metric *metric)
{
	const struct metric_family *family = &metric->family;
	return (struct om_family){
		.name = family->name,
		.type = metric->kind == METRIC_COUNTER ? OM_COUNTER : OM_GAUGE,
		.unit = strrchr(family->name, '_') + 1,
		.help = family->help,
	};
}

void om_begin(struct om *om, struct buf *out, enum om_format format)
{
	*om = (struct om){.out = out, .format = format};
}

void om_family(struct om *om, const struct om_family *family)
{
	om->family = *family;
	om->has_head = false;
}

/* ---- escaping ---- */

// Length of the leading ASCII bytes that need no escape.
static size_t plain_length(const char *text)
{
	size_t n = 0;
	while (text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

/* The formats define three escapes. Some readers reject a document with other control characters or invalid UTF-8. Such a
 * byte is written as U+FFFD and two hex digits, and an original U+FFFD is doubled, so different texts remain different
 * series. */
static void put_escaped(struct buf *out, const char *text)
{
	for (size_t length; *text != '\0'; text += length > 0 ? length : 1) {
		length = plain_length(text); // nearly always the whole text
		if (length > 0) {
			buf_add(out, text, length);
			continue;
		}
		length = utf8_length(text);
		bool is_control = (unsigned char)*text < 0x20 || *text == 0x7f;
		if (*text == '\n')
			buf_str(out, "\\n");
		else if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else if (length == 0 || is_control)
			buf_printf(out, "%s%02x", UTF8_REPLACEMENT, (unsigned char)*text);
		else if (strncmp(text, UTF8_REPLACEMENT, length) == 0)
			buf_str(out, UTF8_REPLACEMENT UTF8_REPLACEMENT);
		else
			buf_add(out, text, length);
	}
}

// Returns the separator for the next label. Labels with empty values are omitted.
static char put_label(struct buf *out, char before, const struct om_label *label)
{
	if (label->value == NULL || label->value[0] == '\0')
		return before;
	buf_char(out, before);
	buf_str(out, label->name);
	buf_str(out, "=\"");
	put_escaped(out, label->value);
	buf_char(out, '"');
	return ',';
}

static void put_labels(struct om *om, const struct om_label *labels, size_t n)
{
	char before = '{';
	for (size_t i = 0; i < n; i++)
		before = put_label(om->out, before, &labels[i]);
	if (put_label(om->out, before, &om->common) == ',')
		buf_char(om->out, '}');
}

/* ---- families and samples ---- */

static void put_head(struct om *om)
{
	const struct om_family *family = &om->family;
	const bool classic = om->format == OM_CLASSIC;
	// In the classic format, HELP and TYPE use sample names with suffixes, and the type "info" does not exist.
	const char *suffix = classic ? types[family->type].suffix : "";
	const char *word = classic && family->type == OM_INFO ? "gauge" : types[family->type].word;
	buf_printf(om->out, "# HELP %s%s ", family->name, suffix);
	put_escaped(om->out, family->help);
	buf_printf(om->out, "\n# TYPE %s%s %s\n", family->name, suffix, word);
	if (!classic && family->unit != NULL)
		buf_printf(om->out, "# UNIT %s %s\n", family->name, family->unit);
	om->has_head = true;
}

static void put_rounded(struct om *om, double value)
{
	char text[64];
	bool is_small = fabs(value) < 1 &&
		om->family.type != OM_COUNTER; // counters have a fixed resolution, whatever their value
	size_t n = is_small ? num_format_significant(text, sizeof(text), value, 9)
			    : num_format_decimals(text, sizeof(text), value, 6);
	buf_add(om->out, text, n);
}

static void put_number(struct om *om, double value)
{
	struct buf *out = om->out;
	if (isfinite(value) && om->is_rounded)
		put_rounded(om, value);
	else if (isnan(value))
		buf_str(out, "NaN");
	else if (isinf(value))
		buf_str(out, value > 0 ? "+Inf" : "-Inf");
	else
		buf_double(out, value);
}

static bool can_be_exported(const struct om *om, double value)
{
	return !isnan(value) && (om->family.type != OM_COUNTER || value >= 0);
}

static void put_sample(struct om *om, const struct om_label *labels, size_t n_labels, double value)
{
	if (!om->has_head)
		put_head(om);
	buf_str(om->out, om->family.name);
	buf_str(om->out, types[om->family.type].suffix);
	put_labels(om, labels, n_labels);
	buf_char(om->out, ' ');
	put_number(om, value);
}

void om_value(struct om *om, const struct om_label *labels, size_t n_labels, double value)
{
	if (!can_be_exported(om, value))
		return;
	put_sample(om, labels, n_labels, value);
	buf_char(om->out, '\n');
}

void om_value_or_nan(struct om *om, const struct om_label *labels, size_t n_labels, double value)
{
	put_sample(om, labels, n_labels, value);
	buf_char(om->out, '\n');
}

void om_value_at(struct om *om, const struct om_label *labels, size_t n_labels, double value, int64_t wall_ms)
{
	if (!can_be_exported(om, value))
		return;
	put_sample(om, labels, n_labels, value);
	/* The classic format uses ms, OpenMetrics seconds. Seconds are written with "e-3" instead of a decimal point: the
	 * strict parser of Debian 12 (prometheus_client 0.16) takes 1.9 for later than 2.0 and rejects the next sample. */
	buf_printf(om->out, om->format == OM_CLASSIC ? " %lld\n" : " %llde-3\n", (long long)wall_ms);
}

void om_end(struct om *om)
{
	if (om->format == OM_OPENMETRICS)
		buf_str(om->out, "# EOF\n");
}
