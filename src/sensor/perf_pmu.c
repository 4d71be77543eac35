#include "sensor/perf_pmu.h"

#include "base/file.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

// "0x1f" or "31"; *at ends behind it.
static bool read_number(const char **at, uint64_t *ret_value)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret_value = strtoull(*at, &end, 0);
	*at = end;
	return errno == 0;
}

static uint64_t *find_word(struct perf_event_code *code, const char *name, size_t length)
{
	const struct {
		const char *name;
		uint64_t *word;
	} words[] = {{"config", &code->config}, {"config1", &code->config1}, {"config2", &code->config2}};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].name) == length && strncmp(words[i].name, name, length) == 0)
			return words[i].word;
	return NULL;
}

/* Deals the value's bits out, lowest first, to the ranges of the format: "config:0-7,32-35". */
static int put_bits(const char *format, uint64_t value, struct perf_event_code *code)
{
	const char *at = strchr(format, ':');
	uint64_t *word = at != NULL ? find_word(code, format, (size_t)(at - format)) : NULL;
	if (word == NULL)
		return -EINVAL;
	do {
		uint64_t low, high;
		at++;
		if (!read_number(&at, &low))
			return -EINVAL;
		high = low;
		if (*at == '-' && (at++, !read_number(&at, &high)))
			return -EINVAL;
		if (high < low || high > 63)
			return -EINVAL;
		uint64_t bits = high - low + 1;
		uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
		*word |= (value & mask) << low;
		value = bits == 64 ? 0 : value >> bits;
	} while (*at == ',');
	return value == 0 ? 0 : -EINVAL;
}

static int put_term(int root_fd, const char *folder, const char *term, uint64_t value, struct perf_event_code *code)
{
	char path[256], format[64];
	if ((size_t)snprintf(path, sizeof(path), "%s/format/%s", folder, term) >= sizeof(path))
		return -EINVAL;
	if (strchr(term, '/') == NULL && file_read_line_in(root_fd, path, format, sizeof(format)) > 0)
		return put_bits(format, value, code);
	// A whole word may be named itself: "config1=0x3".
	uint64_t *word = find_word(code, term, strlen(term));
	if (word == NULL)
		return -EINVAL;
	*word = value;
	return 0;
}

int perf_pmu_encode(int root_fd, const char *folder, const char *terms, struct perf_event_code *ret_code)
{
	struct perf_event_code code = {0};
	const char *at = terms;
	for (;;) {
		char term[48];
		uint64_t value = 1; // a term alone is a flag
		size_t length = strcspn(at, "=,");
		if (length == 0 || length >= sizeof(term))
			return -EINVAL;
		memcpy(term, at, length);
		term[length] = '\0';
		at += length;
		if (*at == '=' && (at++, !read_number(&at, &value)))
			return -EINVAL;
		int r = put_term(root_fd, folder, term, value, &code);
		if (r < 0)
			return r;
		if (*at == '\0')
			break;
		if (*at++ != ',')
			return -EINVAL;
	}
	*ret_code = code;
	return 0;
}

int perf_pmu_read_scale(int root_fd, const char *folder, const char *event, double *ret_joules)
{
	char path[256], text[64];
	const char *end;
	snprintf(path, sizeof(path), "%s/events/%s.unit", folder, event);
	if (file_read_line_in(root_fd, path, text, sizeof(text)) <= 0 || strcmp(text, "Joules") != 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/events/%s.scale", folder, event);
	if (file_read_line_in(root_fd, path, text, sizeof(text)) <= 0)
		return -EINVAL;
	double joules = num_read_double(text, &end);
	if (end == text || *end != '\0' || !(joules > 0) || !isfinite(joules))
		return -EINVAL;
	*ret_joules = joules;
	return 0;
}
