#include "sensor/internal.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/sensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

struct field {
	const char *text;
	size_t length;
};

// Returns the next field of a line, without quotes, blanks or the header's '#'; false at the end.
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

// "activepow3" is channel 3; returns -1 for any other column.
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

// Parses "1671527189.314471465" with nanosecond precision, which a double lacks.
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
	// An unused channel may read slightly below zero; the sum of all channels can't.
	if (!ok || !value_ok(frame.stamp_ns) || n_power < columns->n_power || !(sum_w >= 0 && sum_w < PLAUSIBLE_W))
		return false;
	frame.power_mw = llround(sum_w * 1e3);
	*ret_frame = frame;
	return true;
}

/* External wall meter: --wall-meter FILE, the CSV to which the meter's reader appends.
 *
 * Power is integrated here, frame by frame, with the frames' own time stamps, and reported as an energy counter: the meter
 * has about a hundred frames a second, which sampling the last line would miss. If frames are missing for longer than a few
 * periods, the counter restarts, so that no energy is invented. */

enum { CHUNK = 65536, READ_MAX = 4 * CHUNK, INTERVALS_MAX = 101 };

static const int64_t GAP_MIN_NS = NS_PER_S;
static const int GAP_PERIODS = 5;
static const int64_t ROTATION_CHECK_NS = NS_PER_S;

struct wall {
	const struct wattle_env *env; // borrowed
	char path[512];
	uint64_t channels; // from --wall-meter FILE:1,3; 0: all
	int fd;            // owned
	struct stat identity;
	off_t offset; // of the first unread line
	struct wall_columns columns;
	struct domain domain;
	size_t n_domains; // 0 without --wall-meter
	struct stamp_clock clock;

	struct wall_frame last; // stamp_ns VALUE_MISSING: no frame to continue from
	int64_t last_seen_ns;   // time at which it was read
	double energy_uj;
	int64_t first_t_ns, checked_ns;
	char *buffer; // owned; CHUNK + 1 bytes
};

static int64_t gap_ns(const struct wall *wall)
{
	int64_t periods_ns = wall->domain.update_period_ns * GAP_PERIODS;
	return periods_ns > GAP_MIN_NS ? periods_ns : GAP_MIN_NS;
}

/* ---- opening ---- */

// Parses "meter.csv:1,3": the channels after the last colon, if they are channel numbers.
static uint64_t split_channels(char *path)
{
	char *colon = strrchr(path, ':');
	uint64_t channels = 0, channel;
	if (colon == NULL || colon[1] == '\0')
		return 0;
	char list[64];
	if (!text_copy(list, sizeof(list), colon + 1))
		return 0;
	for (char *save, *word = strtok_r(list, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		if (num_parse_u64(word, &channel) < 0 || channel < 1 || channel > 63)
			return 0;
		channels |= UINT64_C(1) << channel;
	}
	*colon = '\0';
	return channels;
}

static int open_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int open_file(struct wall *wall, const char *file, struct wattle_error *reterr)
{
	if (!text_copy(wall->path, sizeof(wall->path), file))
		return error_set(reterr, -EINVAL, "--wall-meter: the path is too long");
	wall->fd = open_path(wall->path);
	if (wall->fd == -ENOENT && (wall->channels = split_channels(wall->path)) != 0)
		wall->fd = open_path(wall->path);
	if (wall->fd < 0) {
		int r = wall->fd == -ENOENT ? -ENOENT : -EINVAL;
		return error_set(reterr, r, "--wall-meter %s: %s; give the CSV file that the meter's reader writes",
			wall->path, strerror(-wall->fd));
	}
	if (fstat(wall->fd, &wall->identity) < 0 || !S_ISREG(wall->identity.st_mode))
		return error_set(reterr, -EINVAL, "--wall-meter %s is not a regular file", wall->path);
	wall->buffer = malloc(CHUNK + 1);
	return wall->buffer != NULL ? 0 : error_set(reterr, -ENOMEM, "out of memory for --wall-meter");
}

// Reads whole lines at `offset` and replaces newlines by NUL; returns the number of bytes, 0 if there is none.
static size_t read_lines(struct wall *wall, off_t offset)
{
	ssize_t n;
	do
		n = pread(wall->fd, wall->buffer, CHUNK, offset);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	size_t size = (size_t)n;
	while (size > 0 && wall->buffer[size - 1] != '\n')
		size--;
	if (size == 0 && n == CHUNK) // no line is that long: skip invalid data
		size = CHUNK;
	for (size_t i = 0; i < size; i++)
		if (wall->buffer[i] == '\n')
			wall->buffer[i] = '\0';
	wall->buffer[size] = '\0';
	return size;
}

static const char *next_line(const char *line)
{
	return line + strlen(line) + 1;
}

// Messages of the reader about its serial line may precede the header.
static int find_header(struct wall *wall, struct wattle_error *reterr)
{
	size_t size = read_lines(wall, 0);
	bool found = false;
	for (const char *line = wall->buffer; !found && size > 0 && line < wall->buffer + size; line = next_line(line))
		found = wall_csv_header(line, wall->channels, &wall->columns);
	if (!found)
		return error_set(reterr, -EINVAL,
			"--wall-meter %s: no header with #timestamp and #frame_is_ok (OmegaWatt's CSV) in its first lines",
			wall->path);
	if (wall->columns.n_power < (size_t)__builtin_popcountll(wall->channels) || wall->columns.n_power == 0)
		return error_set(reterr, -EINVAL, "--wall-meter %s: its header has no column #activepow of %s",
			wall->path, wall->channels != 0 ? "each channel asked for" : "any channel");
	return 0;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

// Determines the period from existing frames, and continues the integral from the last frame if it is recent.
static void read_earlier(struct wall *wall)
{
	off_t end = wall->identity.st_size;
	off_t start = end > CHUNK ? end - CHUNK : 0;
	size_t size = read_lines(wall, start);
	int64_t intervals_ns[INTERVALS_MAX];
	size_t n = 0;
	struct wall_frame frame;
	for (const char *line = wall->buffer; size > 0 && line < wall->buffer + size; line = next_line(line)) {
		if (!wall_csv_frame(line, &wall->columns, &frame))
			continue;
		if (value_ok(wall->last.stamp_ns) && frame.stamp_ns > wall->last.stamp_ns)
			intervals_ns[n++ % INTERVALS_MAX] = frame.stamp_ns - wall->last.stamp_ns;
		wall->last = frame;
	}
	wall->offset = start + (off_t)size;
	n = n < INTERVALS_MAX ? n : INTERVALS_MAX;
	if (n == 0)
		return;
	qsort(intervals_ns, n, sizeof(intervals_ns[0]), by_value);
	wall->domain.update_period_ns = intervals_ns[n / 2];
}

static void describe(struct wall *wall)
{
	const char *slash = strrchr(wall->path, '/');
	wall->domain = (struct domain){
		.name = "wall",
		.kind = DOMAIN_WALL,
		.index = -1,
		.provenance = PROVENANCE_DERIVED,
		.has_energy = true,
		.readable = true,
		.used = true,
	};
	snprintf(wall->domain.device, sizeof(wall->domain.device), "%.60s, %zu channel%s",
		slash != NULL ? slash + 1 : wall->path, wall->columns.n_power, wall->columns.n_power == 1 ? "" : "s");
	wall->n_domains = 1;
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct wall *wall = state;
	*wall = (struct wall){.env = env, .fd = -1, .first_t_ns = VALUE_MISSING, .last.stamp_ns = VALUE_MISSING};
	stamp_clock_init(&wall->clock, env);
	if (options->wall_meter == NULL)
		return 0;
	int r = open_file(wall, options->wall_meter, reterr);
	if (r == 0)
		r = find_header(wall, reterr);
	if (r < 0)
		return r;
	describe(wall);
	read_earlier(wall);
	return 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct wall *wall = state;
	*ret_count = wall->n_domains;
	return &wall->domain;
}

/* ---- reading ---- */

static void take_frame(struct wall *wall, const struct wall_frame *frame, int64_t t_ns)
{
	int64_t dt_ns = value_ok(wall->last.stamp_ns) ? frame->stamp_ns - wall->last.stamp_ns : 0;
	if (dt_ns < 0 || dt_ns > gap_ns(wall))
		wall->energy_uj += (double)counter_restart_jump_uj(wall->domain.max_power_w, t_ns - wall->first_t_ns);
	else // trapezoid: mW · ns = pJ
		wall->energy_uj += (double)(wall->last.power_mw + frame->power_mw) / 2 * (double)dt_ns * 1e-6;
	wall->last = *frame;
	wall->last_seen_ns = t_ns;
}

// A restarted reader writes its header again, possibly with other columns.
static void take_line(struct wall *wall, const char *line, int64_t t_ns)
{
	struct wall_frame frame;
	if (wall_csv_frame(line, &wall->columns, &frame))
		take_frame(wall, &frame, t_ns);
	else if (line[0] < '0' || line[0] > '9')
		wall_csv_header(line, wall->channels, &wall->columns);
}

// The file was truncated or replaced: read it from the start.
static void follow(struct wall *wall, int64_t t_ns)
{
	struct stat now, there;
	if (fstat(wall->fd, &now) == 0 && now.st_size < wall->offset)
		wall->offset = 0;
	if (t_ns - wall->checked_ns < ROTATION_CHECK_NS)
		return;
	wall->checked_ns = t_ns;
	if (stat(wall->path, &there) < 0 || !S_ISREG(there.st_mode) ||
		(there.st_ino == wall->identity.st_ino && there.st_dev == wall->identity.st_dev))
		return;
	int fd = open_path(wall->path);
	if (fd < 0)
		return;
	close(wall->fd);
	wall->fd = fd;
	wall->identity = there;
	wall->offset = 0;
}

static void read_new_lines(struct wall *wall, int64_t t_ns)
{
	for (size_t total = 0; total < READ_MAX;) {
		size_t size = read_lines(wall, wall->offset);
		if (size == 0) {
			follow(wall, t_ns);
			return;
		}
		for (const char *line = wall->buffer; line < wall->buffer + size; line = next_line(line))
			take_line(wall, line, t_ns);
		wall->offset += (off_t)size;
		total += size;
	}
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct wall *wall = state;
	if (wall->n_domains == 0)
		return;
	if (!value_ok(wall->first_t_ns)) {
		wall->first_t_ns = wall->checked_ns = context->t_ns;
		wall->last_seen_ns = VALUE_MISSING;
	}
	read_new_lines(wall, context->t_ns);
	// Frames from before the run, and a meter without recent frames, give no current value.
	if (!value_ok(wall->last_seen_ns) || context->t_ns - wall->last_seen_ns > gap_ns(wall))
		return;
	rows[0][DEVICE_ENERGY_RAW] = llround(wall->energy_uj);
	rows[0][DEVICE_ENERGY_TIME] = stamp_to_monotonic(&wall->clock, wall->last.stamp_ns, context->t_ns);
	rows[0][DEVICE_POWER] = wall->last.power_mw;
	if (wall->clock.foreign)
		text_copy(wall->domain.note, sizeof(wall->domain.note),
			"the meter's clock differs from this machine's: its frames are dated by their arrival");
}

static void close_sensor(void *state)
{
	struct wall *wall = state;
	if (wall->env != NULL && wall->fd >= 0)
		close(wall->fd);
	free(wall->buffer);
	wall->buffer = NULL;
	wall->fd = -1;
}

const struct sensor_ops sensor_wall = {
	.name = "wall",
	.state_size = sizeof(struct wall),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
