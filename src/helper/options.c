#include "helper/options.h"

#include "base/util.h"
#include "proto/protocol.h"

#include <errno.h>
#include <stddef.h>

const char helper_help[] =
	"usage: wattled [OPTIONS]\n\n"
	"Reads energy counters and sets power limits for people whom the policy allows to. Stays in the foreground,\n"
	"logs to its standard error; SIGTERM and SIGINT restore all limits and end it. WATTLE_* variables are ignored.\n\n"
	"  --socket PATH   where clients come to (default " PROTO_SOCKET_DEFAULT ")\n"
	"  --policy FILE   who may do what; without one members of group wattle may read, and limit the power of\n"
	"                  devices within their own ranges\n"
	"  --state DIR     journal of limits (default /var/lib/wattle)\n"
	"  --nvml LIB      library to load instead of libnvidia-ml.so.1\n"
	"  --sysfs DIR     folder that stands for /sys\n"
	"  --procfs DIR    folder that stands for /proc\n"
	"  --version\n"
	"  --help\n";

static const struct {
	const char *name;
	size_t offset; // of a const char *
} texts[] = {
	{"--socket", offsetof(struct helper_options, socket)},
	{"--sysfs", offsetof(struct helper_options, sysfs)},
	{"--procfs", offsetof(struct helper_options, procfs)},
	{"--nvml", offsetof(struct helper_options, nvml)},
	{"--state", offsetof(struct helper_options, state)},
	{"--policy", offsetof(struct helper_options, policy)},
};

// "--name VALUE" or "--name=VALUE". 1: taken, *at moved on to its last word.
static int take_text(char **argv, int *at, struct helper_options *options, struct wattle_error *reterr)
{
	const char *word = argv[*at];
	size_t length = strcspn(word, "=");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strlen(texts[i].name) != length || strncmp(texts[i].name, word, length) != 0)
			continue;
		const char *value = word[length] == '=' ? word + length + 1 : argv[++*at];
		if (value == NULL || value[0] == '\0')
			return error_set(reterr, -EINVAL, "%s wants a value; `wattled --help` tells more",
				texts[i].name);
		*(const char **)((char *)options + texts[i].offset) = value;
		return 1;
	}
	return 0;
}

int helper_options_parse(int argc, char **argv, struct helper_options *ret_options, struct wattle_error *reterr)
{
	struct helper_options options = {0};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			options.help = true;
			continue;
		}
		if (strcmp(argv[i], "--version") == 0) {
			options.version = true;
			continue;
		}
		const char *word = argv[i];
		int r = take_text(argv, &i, &options, reterr);
		if (r < 0)
			return r;
		if (r == 0)
			return error_set(reterr, -EINVAL, "'%s' is no option; `wattled --help` lists them", word);
	}
	*ret_options = options;
	return 0;
}
