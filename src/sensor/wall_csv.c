#include "sensor/wall_csv.h"

#include "base/num.h"
#include "base/util.h"

#include <strings.h>

struct field {
	const char *text;
	size_t length;
};

// The next field of a line, without quotes, blanks or the header's '#'; false at the end.
static bool next_field(const char **at, struct field *ret_field)
{
	if (*at == NULL)
		return false;
	const char *text = *at;
	size_t length = strcspn(text, ",;\r\n");
	*at = text[length] == ',' || text[length] == ';' ? text + length + 1 : NULL;
	for (; length > 0 && strchr("# \t\"", *text) != NULL; text++)
		length--;
	while (length > 0 && strchr(" \t\"", text[length - 1]) != NULL)
		length--;
	*ret_field = (struct field){text, length};
	return true;
}

static bool is(const struct field *field, const char *word)
{
	return strlen(word) == field->length && strncasecmp(field->text, word, field->length) == 0;
}

// "activepow3" is channel 3; -1 for any other column.
static int power_channel(const struct field *field)
{
	static const char *const names[] = {"activepow", "active_pow", "activepower", "active_power"};
	size_t digits = 0;
	int channel = 0, unit = 1;
	for (; digits < 3 && digits < field->length; digits++, unit *= 10) {
		char c = field->text[field->length - 1 - digits];
		if (c < '0' || c > '9')
			break;
		channel += (c - '0') * unit;
	}
	struct field name = {field->text, field->length - digits};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is(&name, names[i]))
			return digits > 0 ? channel : 0;
	return -1;
}

static bool counts(int channel, uint64_t channels)
{
	return channel >= 0 && (channels == 0 || (channel < 64 && (channels >> channel & 1) != 0));
}

bool wall_csv_header(const char *line, uint64_t channels, struct wall_columns *ret_columns)
{
	struct wall_columns columns = {.timestamp = -1, .frame_is_ok = -1};
	const char *at = line;
	struct field field;
	for (int i = 0; i < WALL_COLUMNS_MAX && next_field(&at, &field); i++) {
		if (is(&field, "timestamp"))
			columns.timestamp = i;
		else if (is(&field, "frame_is_ok"))
			columns.frame_is_ok = i;
		columns.is_power[i] = counts(power_channel(&field), channels);
		columns.n_power += columns.is_power[i];
	}
	if (columns.timestamp < 0 || columns.frame_is_ok < 0)
		return false;
	*ret_columns = columns;
	return true;
}

// "1671527189.314471465" to the nanosecond, which a double can't hold.
static bool parse_stamp(const struct field *field, int64_t *ret_ns)
{
	static const int64_t SECONDS_MAX = INT64_MAX / NS_PER_S - 1;
	int64_t seconds = 0, fraction_ns = 0, unit_ns = NS_PER_S / 10;
	size_t i = 0;
	for (; i < field->length && field->text[i] >= '0' && field->text[i] <= '9'; i++) {
		seconds = seconds * 10 + (field->text[i] - '0');
		if (seconds > SECONDS_MAX)
			return false;
	}
	if (i == 0)
		return false;
	if (i < field->length && field->text[i] == '.')
		for (i++; i < field->length && field->text[i] >= '0' && field->text[i] <= '9'; i++, unit_ns /= 10)
			fraction_ns += (field->text[i] - '0') * unit_ns;
	*ret_ns = seconds * NS_PER_S + fraction_ns;
	return i == field->length;
}

static bool parse_watts(const struct field *field, double *ret_w)
{
	const char *end;
	*ret_w = num_read_double(field->text, &end);
	return field->length > 0 && end == field->text + field->length && isfinite(*ret_w);
}

bool wall_csv_frame(const char *line, const struct wall_columns *columns, struct wall_frame *ret_frame)
{
	static const double PLAUSIBLE_W = 1e6;
	const char *at = line;
	struct field field;
	struct wall_frame frame = {.stamp_ns = VALUE_MISSING};
	double sum_w = 0, power_w;
	size_t n_power = 0;
	bool ok = false;
	for (int i = 0; i < WALL_COLUMNS_MAX && next_field(&at, &field); i++) {
		if (i == columns->timestamp && !parse_stamp(&field, &frame.stamp_ns))
			return false;
		if (i == columns->frame_is_ok)
			ok = is(&field, "true") || is(&field, "1");
		if (!columns->is_power[i])
			continue;
		if (!parse_watts(&field, &power_w))
			return false;
		sum_w += power_w;
		n_power++;
	}
	// A channel in which nothing is plugged may read a little below zero; all of them together can't.
	if (!ok || !value_ok(frame.stamp_ns) || n_power < columns->n_power || !(sum_w >= 0 && sum_w < PLAUSIBLE_W))
		return false;
	frame.power_mw = llround(sum_w * 1e3);
	*ret_frame = frame;
	return true;
}
