#include "spank/spank.h"

#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <stddef.h>

static const int64_t shortest_ns = NS_PER_MS, longest_ns = 3600 * NS_PER_S;

void settings_init(struct settings *settings, const char *program)
{
	*settings = (struct settings){
		.comment = true,
		.interval = "100ms",
		.folder = "wattle-%j",
		.scontrol = "scontrol",
		.ready_ns = 5 * NS_PER_S,
		.wait_ns = 15 * NS_PER_S,
	};
	text_copy(settings->program, sizeof(settings->program), program);
}

/* ---- values ---- */

static int too_long(const char *name, size_t size, struct wattle_error *reterr)
{
	return error_set(reterr, -EINVAL, "%s: longer than %zu bytes", name, size - 1);
}

static int take_text(char *out, size_t size, const char *name, const char *value, struct wattle_error *reterr)
{
	if (value[0] == '\0')
		return error_set(reterr, -EINVAL, "%s: is empty", name);
	if (strlen(value) >= size)
		return too_long(name, size, reterr);
	text_copy(out, size, value);
	return 0;
}

static int take_duration(int64_t *out, const char *name, const char *value, struct wattle_error *reterr)
{
	int64_t ns;
	if (num_parse_duration(value, &ns) < 0 || ns < 0 || ns > longest_ns)
		return error_set(reterr, -EINVAL, "%s: '%s' is not valid; give a duration up to 1h, such as 10s", name,
			value);
	*out = ns;
	return 0;
}

static int take_yes(bool *out, const char *name, const char *value, struct wattle_error *reterr)
{
	bool yes = strcmp(value, "yes") == 0;
	if (!yes && strcmp(value, "no") != 0)
		return error_set(reterr, -EINVAL, "%s: '%s' is not valid; give yes or no", name, value);
	*out = yes;
	return 0;
}

// on, off, or an interval
static int take_interval(struct settings *settings, const char *name, const char *value, struct wattle_error *reterr)
{
	if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0) {
		settings->wanted = strcmp(value, "on") == 0;
		return 0;
	}
	int64_t ns;
	if (num_parse_duration(value, &ns) < 0 || ns < shortest_ns || ns > longest_ns ||
		strlen(value) >= sizeof(settings->interval))
		return error_set(reterr, -EINVAL,
			"%s: '%s' is not valid; give how often to sample, from 1ms to 1h, such as 100ms, or on or off",
			name, value);
	text_copy(settings->interval, sizeof(settings->interval), value);
	settings->wanted = true;
	return 0;
}

static int take_words(char *out, size_t size, const char *name, const char *value, struct wattle_error *reterr)
{
	size_t length = strlen(out);
	if (length + 1 + strlen(value) >= size)
		return too_long(name, size, reterr);
	out[length] = ' ';
	text_copy(out + length + 1, size - length - 1, value);
	return 0;
}

/* ---- sources ---- */

int settings_take_site(struct settings *settings, const char *argument, struct wattle_error *reterr)
{
	struct settings *s = settings;
	char key[32] = "";
	const char *equals = strchr(argument, '=');
	if (equals != NULL && (size_t)(equals - argument) < sizeof(key))
		memcpy(key, argument, (size_t)(equals - argument));
	const char *value = equals != NULL ? equals + 1 : "";
	if (strcmp(key, "default") == 0)
		return take_interval(s, key, value, reterr);
	if (strcmp(key, "folder") == 0)
		return take_text(s->folder, sizeof(s->folder), key, value, reterr);
	if (strcmp(key, "wattle") == 0)
		return take_text(s->program, sizeof(s->program), key, value, reterr);
	if (strcmp(key, "scontrol") == 0)
		return take_text(s->scontrol, sizeof(s->scontrol), key, value, reterr);
	if (strcmp(key, "option") == 0)
		return take_words(s->site_words, sizeof(s->site_words), key, value, reterr);
	if (strcmp(key, "ready") == 0)
		return take_duration(&s->ready_ns, key, value, reterr);
	if (strcmp(key, "wait") == 0)
		return take_duration(&s->wait_ns, key, value, reterr);
	if (strcmp(key, "comment") == 0)
		return take_yes(&s->comment, key, value, reterr);
	return error_set(reterr, -EINVAL,
		"plugstack.conf: unknown setting '%s'; valid are default=, folder=, wattle=, scontrol=, "
		"option=, ready=, wait= and comment=",
		argument);
}

int settings_take_user(struct settings *settings, enum settings_option option, const char *value,
	struct wattle_error *reterr)
{
	bool has_value = value != NULL && value[0] != '\0' && strcmp(value, "(null)") != 0;
	switch (option) {
	case SETTINGS_INTERVAL:
		return take_interval(settings, "--wattle", has_value ? value : "on", reterr);
	case SETTINGS_FOLDER:
		return take_text(settings->folder, sizeof(settings->folder), "--wattle-folder", has_value ? value : "",
			reterr);
	case SETTINGS_WORDS:
		if (!has_value)
			return 0;
		settings->user_words[0] = '\0'; // in slurmstepd, Slurm passes the option twice
		return take_words(settings->user_words, sizeof(settings->user_words), "--wattle-options", value,
			reterr);
	}
	return -EINVAL;
}

/* ---- derived values ---- */

int settings_folder(const struct settings *settings, const char *job_id, char *ret_folder, size_t size,
	struct wattle_error *reterr)
{
	size_t n = 0;
	for (const char *at = settings->folder; *at != '\0'; at++) {
		const char one[2] = {*at, '\0'};
		const char *part = one;
		if (*at == '%') {
			at++;
			if (*at != 'j' && *at != '%')
				return error_set(reterr, -EINVAL,
					"%s: a folder name can only contain %%j (job ID) and %%%%",
					settings->folder);
			part = *at == 'j' ? job_id : "%";
		}
		if (n + strlen(part) >= size)
			return too_long(settings->folder, size, reterr);
		n += strlen(strcpy(ret_folder + n, part));
	}
	return 0;
}
